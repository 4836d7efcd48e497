"""Run the claims: what Transformers and recurrent networks can and cannot represent.

The package has four parts, each importable on its own and each light to import:

- ``companion.theory``: exact objects (vectors, fixed point, hand-set weights, protocols, automata);
- ``companion.models``: sequence models, all called as ``logits, state = model(tokens, state)``;
- ``companion.experiments``: tasks, runs, training, stored results;
- ``companion.book``: figures, explorers, and the pipeline that executes and builds the book.

>>> import companion
>>> companion.__version__
'0.1.0'
"""

__version__ = "0.1.0"
