"""The event runtime: subscriptions, consumers and their policies, broadcast listeners."""

from libs.eventbus.admin import apply_topics
from libs.eventbus.connection import KafkaConnection
from libs.eventbus.consumer import Consumer
from libs.eventbus.listening import Listener
from libs.eventbus.policies import (
    CommitPolicy,
    FlowPolicy,
    GatePolicy,
    Policies,
    RetryPolicy,
)
from libs.eventbus.subscriptions import Failure, Subscriptions

__all__ = [
    "CommitPolicy",
    "Consumer",
    "Failure",
    "FlowPolicy",
    "GatePolicy",
    "KafkaConnection",
    "Listener",
    "Policies",
    "RetryPolicy",
    "Subscriptions",
    "apply_topics",
]
