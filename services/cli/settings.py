"""Where the CLI finds the platform and its API key."""

from typing import Self

from pydantic import Field

from libs.service.settings import PlatformSettings


class CliSettings(PlatformSettings):
    url: str | None = Field(default=None, validation_alias="SLUICE_URL")
    api_key: str | None = Field(default=None, validation_alias="SLUICE_API_KEY", repr=False)
    milvus_port: int = Field(default=19530, validation_alias="SLUICE_MILVUS_PORT")

    @property
    def base_url(self) -> str:
        return (self.url or f"http://127.0.0.1:{self.gateway_port}").rstrip("/")

    def read_key(self) -> str | None:
        """The configured key, else the one that local mode made on its first start."""
        if self.api_key:
            return self.api_key
        key_file = self.home / "api-key"
        return key_file.read_text().strip() if key_file.is_file() else None

    def with_stores(self) -> Self:
        """The same, with the embedded Milvus where the local stack puts it."""
        if "milvus_uri" in self.model_fields_set:
            return self
        return self.model_copy(update={"milvus_uri": f"http://127.0.0.1:{self.milvus_port}"})
