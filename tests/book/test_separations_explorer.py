"""The landing page's explorer shows the values of the one table."""

import json
import math
import re
import shutil
import subprocess

import pytest
import traitlets

from companion.book.separations_explorer import (
    ALPHABETS,
    LENGTHS,
    PRECISIONS,
    SeparationsExplorer,
)
from companion.theory.table import ARCHITECTURES, TABLE, bits


def test_data_are_the_values_of_the_table_rounded_up():
    data = SeparationsExplorer().data
    for t, row in enumerate(TABLE):
        for a, key in enumerate(ARCHITECTURES):
            for i, p in enumerate(PRECISIONS):
                for j, q in enumerate(ALPHABETS):
                    found = data["values"][t][a][i][j]
                    wanted = [bits(row, key, N, p, q) for N in LENGTHS]
                    assert found == [None if x is None else math.ceil(x) for x in wanted]


def test_table_follows_the_choice_and_says_which_kind_of_bound():
    explorer = SeparationsExplorer(n=16, p=32, q=2)
    rows = {row[0]: row[1:] for row in explorer.table().rows}
    assert rows["Index Lookup, index last"][0] == f"= {1 << 20:,}"
    assert rows["Dyck-(2,2)"][0] == "≤ 3" and rows["Dyck-(2,2)"][1].startswith("≥ ")
    assert rows["Associative recall of N pairs"][1] == "open"


def test_page_part_holds_its_own_data_and_nothing_remote():
    html = SeparationsExplorer().html("here")
    state = re.search(r"^const state = (.*);$", html, re.M).group(1)
    assert json.loads(state)["data"] == SeparationsExplorer().data
    assert "http://www.w3.org/2000/svg" in html
    assert not re.search(r"(?:src|href)=|import\s|https:", html)
    assert html.lower().count("</script") == 1 and "<!--" not in html


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to check the syntax with")
def test_script_is_valid(tmp_path):
    script = SeparationsExplorer().html("here").split('<script type="module">')[1]
    (tmp_path / "page.mjs").write_text(script.split("</script>")[0], encoding="utf8")
    subprocess.run(["node", "--check", str(tmp_path / "page.mjs")], check=True)


@pytest.mark.parametrize("bad", [{"n": 17}, {"p": 12}, {"q": 3}])
def test_choices_outside_the_data_are_refused(bad):
    with pytest.raises(traitlets.TraitError, match=str(next(iter(bad.values())))):
        SeparationsExplorer(**bad)
