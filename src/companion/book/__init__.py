"""The book: figures, explorers, and the pipeline that executes notebooks and builds pages.

Pipeline, in the order in which it runs: ``vendor`` (browser files), ``execute`` (papermill),
``pages`` and ``svg`` (Sphinx), ``check`` (the built pages).  ``build`` strings them together,
``hygiene`` keeps the sources clean, ``address`` knows where the repository lives.
"""
