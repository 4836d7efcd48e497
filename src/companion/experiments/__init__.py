"""Tasks, runs, training, sweeps and stored results."""

from companion.experiments.device import Device, choose_device
from companion.experiments.dyck import Dyck, HardDyck
from companion.experiments.equality import EqNext, EqOne, EqRandom
from companion.experiments.index_lookup import IndexFirst, IndexLookup, MultiIndexLookup
from companion.experiments.presets import PRESETS, figure_2_index
from companion.experiments.progress import Progress
from companion.experiments.recall import AssociativeRecall, MultiQueryRecall
from companion.experiments.result import Check, Result, Score, pool, wilson
from companion.experiments.run import Run
from companion.experiments.store import load, load_file, results_dir, save
from companion.experiments.sweep import sweep, table
from companion.experiments.task import TASKS, Batch, Task, build_task
from companion.experiments.train import Trained, evaluate, train

__all__ = [
    "PRESETS",
    "TASKS",
    "AssociativeRecall",
    "Batch",
    "Check",
    "Device",
    "Dyck",
    "EqNext",
    "EqOne",
    "EqRandom",
    "HardDyck",
    "IndexFirst",
    "IndexLookup",
    "MultiIndexLookup",
    "MultiQueryRecall",
    "Progress",
    "Result",
    "Run",
    "Score",
    "Task",
    "Trained",
    "build_task",
    "choose_device",
    "evaluate",
    "figure_2_index",
    "load",
    "load_file",
    "pool",
    "results_dir",
    "save",
    "sweep",
    "table",
    "train",
    "wilson",
]
