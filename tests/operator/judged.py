"""A cluster in memory, judged."""

from beckon_contract.kubernetes_objects import Condition
from beckon_contract.resources.tools import CONDITIONS
from beckon_operator.conditions.namespace_view import JudgingRules
from beckon_operator.conditions.verdicts import Verdict
from beckon_operator.desired_state import DesiredState
from beckon_operator.judge import Judge
from beckon_operator.metrics import Metrics
from beckon_operator.objects import BROKERS, EVENT_TYPES, SERVICES, TOOLS, TRIGGERS, Kind
from tests.operator.documents import NAMESPACE, RULES, Document

KINDS = {kind.name: kind for kind in (BROKERS, EVENT_TYPES, SERVICES, TOOLS, TRIGGERS)}


class Judged:
    """What the operator makes of objects that it is shown."""

    def __init__(self, *documents: Document, rules: JudgingRules = RULES) -> None:
        self.desired = DesiredState()
        self.seconds = 0.0
        self.judge = Judge(self.desired, rules, Metrics(), lambda: self.seconds)
        self.see(*documents)

    def see(self, *documents: Document) -> None:
        """Show objects, and judge what changed."""
        for document in documents:
            self.judge.cluster.observe_object(self.kind(document), document)
        self.judge.judge_all()

    def wait(self, seconds: float) -> None:
        """Let time pass, and judge what it changed."""
        self.seconds += seconds
        self.judge.judge_all()

    def lose(self, document: Document) -> None:
        """Delete an object, and judge what changed."""
        self.judge.cluster.observe_deletion(self.kind(document), document["metadata"])
        self.judge.judge_all()

    def kind(self, document: Document) -> Kind:
        """Return the kind of an object."""
        return KINDS[document["kind"]]

    def verdict(self, name: str = "get.weather", namespace: str = NAMESPACE) -> Verdict:
        """Return the verdict on an EventType, which must have one."""
        found = self.desired.wanted_tool(namespace, name)
        assert found is not None
        return found.verdict

    def condition(self, which: str, name: str = "get.weather") -> Condition:
        """Return a condition of a Tool."""
        return self.verdict(name).conditions[CONDITIONS.index(which)]


def words(found: Condition) -> tuple[str, str]:
    """Return the status and the reason of a condition."""
    return found.status, found.reason
