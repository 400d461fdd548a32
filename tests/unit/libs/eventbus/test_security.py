from pathlib import Path
from typing import Any

import pytest

from libs.eventbus.security import KafkaSecurity
from libs.kernel import PermanentError
from libs.service.settings import PlatformSettings

USER: dict[str, Any] = {"username": "u", "password": "s3cret"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"protocol": "SASL_SSL"}, "set KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD"),
        ({"protocol": "SASL_SSL", "username": "u"}, "KAFKA_SASL_PASSWORD"),
        (USER, "set KAFKA_SECURITY_PROTOCOL to SASL_SSL"),
        ({"protocol": "SSL", **USER}, "set KAFKA_SECURITY_PROTOCOL to SASL_SSL"),
        ({"ca_file": Path("ca.pem")}, "set KAFKA_SECURITY_PROTOCOL to SSL or SASL_SSL"),
        ({"protocol": "SSL", "ca_file": Path("/nowhere/ca.pem")}, "/nowhere/ca.pem, .*No such"),
        ({"protocol": "SSL", "ca_file": Path(__file__)}, "no certificate in PEM format"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_what_to_set(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(PermanentError, match=says) as refused:
        KafkaSecurity(**settings)
    assert refused.value.reason == "kafka-settings"
    assert "s3cret" not in str(refused.value)


def test_every_setting_of_the_broker_reaches_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KAFKA_BOOTSTRAP": "a:1,b:2",
        "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "KAFKA_SASL_USERNAME": "u",
        "KAFKA_SASL_PASSWORD": "s3cret",
        "KAFKA_IDEMPOTENCE": "true",
        "KAFKA_CLIENT_RACK": "zone-1",
    }.items():
        monkeypatch.setenv(name, value)
    kafka = PlatformSettings().kafka
    options = kafka.security.client_options()
    assert options.pop("ssl_context") is kafka.security.ssl_context() is not None
    assert options == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "s3cret",
    }
    assert (kafka.bootstrap, kafka.idempotence, kafka.rack) == ("a:1,b:2", True, "zone-1")
    assert "s3cret" not in f"{kafka!r} {kafka}"
