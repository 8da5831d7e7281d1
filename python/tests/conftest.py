import pytest
import wherefore

FILMS = [
    ("Heat", "directed_by", "Michael Mann"),
    ("Heat", "starring", "Al Pacino"),
    ("Heat", "starring", "Robert De Niro"),
    ("Heat", "release_year", 1995),
    ("Ali", "directed_by", "Michael Mann"),
    ("Ali", "release_year", 2001),
    ("Blade Runner", "directed_by", "Ridley Scott"),
    ("Blade Runner", "release_year", 1982),
]


@pytest.fixture
def films():
    with wherefore.Graph.from_triples(FILMS) as graph:
        yield graph


@pytest.fixture(scope="session")
def world():
    return wherefore.Graph.open("@world")
