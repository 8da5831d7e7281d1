"""The notebook runs from its first cell to its last."""

import pathlib

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_the_notebook_of_films():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "films.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}})
    client.execute()
    told = "".join(
        output.get("text", "") for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    )
    assert "<Answer: Michael Mann>" in told
    assert "relation-plan" in told
