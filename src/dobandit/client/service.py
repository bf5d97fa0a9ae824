"""`connect`: the experiments of a service, by name."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from dobandit.checks import shown
from dobandit.client import values
from dobandit.client.connection import Connected, Connection
from dobandit.client.experiment import RemoteExperiment
from dobandit.documents.live import read
from dobandit.errors import ExperimentError, GraphError, MissingError, closest
from dobandit.experiment.definition import Definition, lease_seconds
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import as_graph, print_graph
from dobandit.model.causal_model import CausalModel
from dobandit.oracle.rules import RULE_WORDS, Rules, rules_of
from dobandit.policy.base import Policy
from dobandit.policy.problem import warn_of_levels
from dobandit.storage.contract import StoredExperiment
from dobandit.storage.storage_errors import storable


def connect(url: str, token: str | None = None, *, timeout: float = 60.0, patience: float = 60.0) -> Service:
    """The experiments of a service (`dobandit serve`).

    url       where it is: "http://127.0.0.1:8765"
    token     what `dobandit token create` printed
    timeout   seconds to wait for one answer
    patience  seconds for which a request is repeated that was lost, or that the service was too busy for: it is
              carried out once, however often it arrives

    Returns a `Service`, whose experiments have the methods of local ones.

    >>> import dobandit as dob
    >>> dob.connect("http://127.0.0.1:8765", "token")  # nothing is asked of it yet
    Service('http://127.0.0.1:8765')
    """
    return Service(Connection(url, token, timeout, patience))


class Service(Connected):
    """What `dobandit` itself has for a storage: create, open, list, rename and delete experiments. Made by `connect`;
    `close` it, or use it in a `with` block. The functions of the same names have examples.

    >>> import dobandit as dob
    >>> with dob.connect("http://127.0.0.1:8765", "token") as service:
    ...     service
    Service('http://127.0.0.1:8765')
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.url!r})"

    def create_experiment(
        self,
        name: str,
        graph: CausalGraph | CausalModel,
        budget: int | Rules | None = None,
        policy: Policy | str | None = None,
        *,
        lease: float | timedelta | None = None,
        links: Any = None,
        history: Any = None,
        **words: Any,
    ) -> RemoteExperiment:
        """A new experiment on the service.

        name, graph, budget, policy, lease, links, history  as in `dobandit.create_experiment`
        words                                               its other arguments, but for storage and clock
        """
        allowed = rules_of(budget, {word: words.pop(word) for word in list(words) if word in RULE_WORDS})
        optional = {
            "policy": None if policy is None else _policy(policy),
            "lease": None if lease is None else lease_seconds(lease),
            "links": links,
            "history": None if history is None else values.history(history),
        }
        given = {word: value for word, value in optional.items() if value is not None}
        document = {"name": name, "graph": _graph(graph), **_rules(allowed), **words, **given}
        made = self._connection.post("/experiments", values.plain(document), once=True)
        if made.get("created"):
            definition = Definition(made["definition"])
            if not definition.policy.any_graph:
                warn_of_levels(definition.problem)
        return RemoteExperiment(self._connection, made["id"], made["experiment"], made["definition"])

    def open_experiment(self, name: str) -> RemoteExperiment:
        """The experiment of that name. Raises MissingError where there is none, with one that is near.

        name  as it was created
        """
        shown_ = self._connection.get(f"/experiments/{self._id(name)}")
        return RemoteExperiment(self._connection, shown_["id"], shown_["name"], shown_["definition"])

    def list_experiments(self) -> list[StoredExperiment]:
        """The experiments of the service by name, as `dobandit.list_experiments` gives them."""
        found: list[StoredExperiment] = []
        while True:
            after = {"after": found[-1].name} if found else {}
            page = self._connection.get("/experiments", {"limit": _PAGE, **after})["experiments"]
            found += [read(StoredExperiment, one, document="") for one in page]
            if len(page) < _PAGE:
                return found

    def delete_experiment(self, name: str) -> None:
        """Delete an experiment with its whole log, for good.

        name  which
        """
        self._connection.send("DELETE", f"/experiments/{self._id(name)}")

    def rename_experiment(self, name: str, new: str) -> None:
        """Give an experiment another name; whoever holds it goes on undisturbed.

        name  as it is called now
        new   as it will be called
        """
        self._connection.send("PATCH", f"/experiments/{self._id(name)}", document={"name": values.plain(new)})

    def _id(self, name: str) -> int:
        if not isinstance(name, str):
            raise ExperimentError(f"an experiment's name is a text, but got {shown(name)}.")
        found = self._connection.get("/experiments", {"name": name})["experiments"] if storable(name) else []
        if found:
            return int(found[0]["id"])
        names = [one.name for one in self.list_experiments()]
        hint = closest(name, names) or (" There are none." if not names else "")
        raise MissingError(f"there is no experiment {name!r} in {self._connection.url}.{hint}")


_PAGE = 1000


def _rules(rules: Rules) -> dict[str, Any]:
    given = rules.to_document().items()
    said = {key: value for key, value in given if key == "available" or value not in (None, [], {}, ())}
    return said if rules.budget is None else {**said, "budget": rules.budget}  # as it came: the service checks it


def _graph(graph: Any) -> Any:
    if isinstance(graph, CausalModel):
        from dobandit.model.model_files import model_to_document

        return model_to_document(graph)
    return json.loads(print_graph(as_graph(graph, "the graph must be a CausalGraph", GraphError), "json"))


def _policy(policy: Any) -> Any:
    if isinstance(policy, Policy):
        from dobandit.policy.registry import policy_to_document

        return policy_to_document(policy)
    return policy
