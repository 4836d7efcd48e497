"""Tasks, runs, training, sweeps and stored results."""

from companion.experiments.counter_languages import (
    CounterThree,
    CounterTwo,
    DyckOne,
    ResetDyckOne,
    ShuffleTwo,
)
from companion.experiments.device import Device, choose_device
from companion.experiments.dyck import Dyck, HardDyck
from companion.experiments.equality import EqNext, EqOne, EqRandom
from companion.experiments.generalisation import Scores, Splits, accuracy_by_length, splits
from companion.experiments.index_lookup import IndexFirst, IndexLookup, MultiIndexLookup
from companion.experiments.inner_product import InnerProduct
from companion.experiments.languages import AaStar, AbabStar, Language, Parity
from companion.experiments.nearest_neighbor import NearestNeighbor
from companion.experiments.progress import Progress
from companion.experiments.recall import AssociativeRecall, MultiQueryRecall
from companion.experiments.result import Check, Result, Score, pool, wilson
from companion.experiments.run import Run
from companion.experiments.store import load, load_file, results_dir, save
from companion.experiments.studies import STUDIES, reported
from companion.experiments.study import Study
from companion.experiments.sweep import sweep, table
from companion.experiments.task import NOTHING, TASKS, Batch, Task, build_task, exams
from companion.experiments.train import Trained, evaluate, train, train_together

__all__ = [
    "NOTHING",
    "STUDIES",
    "TASKS",
    "AaStar",
    "AbabStar",
    "AssociativeRecall",
    "Batch",
    "Check",
    "CounterThree",
    "CounterTwo",
    "Device",
    "Dyck",
    "DyckOne",
    "EqNext",
    "EqOne",
    "EqRandom",
    "HardDyck",
    "IndexFirst",
    "IndexLookup",
    "InnerProduct",
    "Language",
    "MultiIndexLookup",
    "MultiQueryRecall",
    "NearestNeighbor",
    "Parity",
    "Progress",
    "ResetDyckOne",
    "Result",
    "Run",
    "Score",
    "Scores",
    "ShuffleTwo",
    "Splits",
    "Study",
    "Task",
    "Trained",
    "accuracy_by_length",
    "build_task",
    "choose_device",
    "evaluate",
    "exams",
    "load",
    "load_file",
    "pool",
    "reported",
    "results_dir",
    "save",
    "splits",
    "sweep",
    "table",
    "train",
    "train_together",
    "wilson",
]
