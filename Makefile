# Two commands matter: `make book` and `make test`. Both set themselves up from nothing.
PYTHON ?= python3
PORT ?= 8000
COMPANION = .venv/bin/python -m companion

help:  ## say what each target does
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1	/'

book: environment  ## execute the notebooks and build the pages (options in ARGS)
	@$(COMPANION) book build $(ARGS)

test: environment  ## lint, hygiene, unit tests, docstring examples, book, browser
	@$(COMPANION) book test $(ARGS)

tidy: environment  ## rewrite what can be rewritten: notebooks, imports, formatting, address
	@$(COMPANION) book tidy

serve: book  ## build, then serve the pages on http://localhost:$(PORT)
	@echo "http://localhost:$(PORT)"
	@.venv/bin/python -m http.server --directory _build/html $(PORT)

benchmark: environment  ## time training steps beside others, 15 minutes (options in ARGS)
	@.venv/bin/python benchmarks/compare.py $(ARGS)
	@.venv/bin/python benchmarks/grid.py

clean:  ## remove everything that was built (not the environment)
	rm -rf _build

environment:
	@$(PYTHON) tools/environment.py

.PHONY: help book test tidy serve benchmark clean environment
.DEFAULT_GOAL := help
