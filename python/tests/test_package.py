"""The package as it is installed: typed, with stubs that say what the compiled half has."""

import ast
import inspect
from importlib import resources

import pytest

import hbpca
from hbpca import _hbpca

PACKAGE = resources.files("hbpca")
NODES = ast.parse((PACKAGE / "_hbpca.pyi").read_text()).body
STUBS = {node.name: node for node in NODES if hasattr(node, "name")}
CONSTANTS = {node.target.id for node in NODES if isinstance(node, ast.AnnAssign)}


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").is_file()
    assert hbpca.__version__ == _hbpca.VERSION


def test_every_public_name_exists():
    assert all(hasattr(hbpca, name) for name in hbpca.__all__)


def test_stubs_name_what_there_is():
    public = {name for name in dir(_hbpca) if not name.startswith("_")}
    assert public == {*STUBS, *CONSTANTS}


@pytest.mark.parametrize("name", [name for name, stub in STUBS.items() if isinstance(stub, ast.FunctionDef)])
def test_stubs_of_functions_have_their_parameters(name):
    arguments = STUBS[name].args
    said = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    assert said == list(inspect.signature(getattr(_hbpca, name)).parameters)


@pytest.mark.parametrize("name", [name for name, stub in STUBS.items() if isinstance(stub, ast.ClassDef)])
def test_stubs_of_classes_have_their_members(name):
    said = {member.name for member in STUBS[name].body if not member.name.startswith("_")}
    assert said == {member for member in dir(getattr(_hbpca, name)) if not member.startswith("_")}
