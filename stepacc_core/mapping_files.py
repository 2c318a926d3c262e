"""Reading declared mappings from YAML: a convention of one's own without code.

```yaml
mappings:
  - name: our agents
    kind_attribute: step.type            # spans that have it
    kinds: {function: TOOL, model: LLM}  # what its values mean
    tool_name: step.function
    tool_arguments: step.arguments
    agent_name: step.agent
```
"""

from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.errors import ConfigError

_ADAPTER = TypeAdapter(tuple[DeclaredMapping, ...])


def parse_mappings(text: str, *, name: str) -> tuple[DeclaredMapping, ...]:
    """Parse a file of declared mappings: a list, or a list under `mappings`.

    Args:
        text: the file's content, YAML or JSON.
        name: what to call the file in messages.

    Raises:
        ConfigError: the file is no list of mappings, or a field is unknown, missing or wrong; the sentence names file,
            mapping and field.
    """
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        msg = f"`{name}` is no valid YAML: {error}."
        raise ConfigError(msg) from None
    listed: Any = document.get("mappings") if isinstance(document, dict) else document
    if not isinstance(listed, list) or not listed:
        msg = f"`{name}` declares no mapping; write a list of them under `mappings`."
        raise ConfigError(msg)
    try:
        return _ADAPTER.validate_python(listed)
    except ConfigError as error:
        msg = f"`{name}`: {error}"
        raise ConfigError(msg) from None
    except ValidationError as error:
        first = error.errors()[0]
        number, *path = first["loc"] or (0,)
        field = ".".join(str(part) for part in path) or "(the whole mapping)"
        msg = f"`{name}`, mapping {int(number) + 1}, field `{field}`: {first['msg']}; given {first['input']!r}."
        raise ConfigError(msg) from None
