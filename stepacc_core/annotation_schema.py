"""The JSON Schema of annotation files, for editors: made from the models that read them."""

from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from stepacc_core.annotation_entries import AnnotationFile, AnnotationFileEntry
from stepacc_core.annotations import KEYS
from stepacc_core.references.document import AnyElement, AnyReference, References

_DIALECT = GenerateJsonSchema.schema_dialect
_T = TypeVar("_T")
_Listed = Annotated[list[_T], Field(min_length=1)]


class _Entry(AnnotationFileEntry):
    """An entry with the forms of its references spelt out; they are read apart from it."""

    reference_trajectories: References | _Listed[AnyElement] | _Listed[AnyReference] = Field(
        description=AnnotationFileEntry.model_fields["reference_trajectories"].description
    )


class _File(AnnotationFile):
    annotations: list[_Entry] = Field(min_length=1, description="The entries.")


def annotation_schema() -> dict[str, Any]:
    """Return the JSON Schema of an annotations file as YAML and JSON have it: an object, or a list of entries."""
    made = TypeAdapter(_File | list[_Entry]).json_schema(mode="validation")
    entry = made["$defs"]["_Entry"]
    entry["required"] = ["target"]
    entry["anyOf"] = [{"required": [key]} for key in KEYS]
    return {"$schema": _DIALECT, "title": "Annotations of stepacc", **made}
