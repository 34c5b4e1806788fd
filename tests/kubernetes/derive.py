#!/usr/bin/env python3
"""Writes schema.json: what Kubernetes accepts as a Job, a Service and a Secret.

derive.py MODELS > schema.json

MODELS is the folder dist/gen/models of the npm package @kubernetes/client-node (npm pack @kubernetes/client-node, then unpack it), whose
models are generated from the OpenAPI description of Kubernetes. Names of fields, their types, and which of them must be there are
taken; descriptions are not. Fields that are not known are refused.
"""
import json
import pathlib
import re
import sys

KINDS = {"Job": ("batch/v1", "V1Job"), "Secret": ("v1", "V1Secret"), "Service": ("v1", "V1Service")}
PLAIN = {"string": {"type": "string"}, "boolean": {"type": "boolean"}, "Date": {"type": "string"}, "any": {}, "object": {"type": "object"},
         "IntOrString": {"type": ["integer", "string"]}, "V1MicroTime": {"type": "string"}}
FIELD = re.compile(r'\{\s*"name": "(.*?)",\s*"baseName": "(.*?)",\s*"type": "(.*?)",\s*"format": "(.*?)"\s*\}')


def type_of(text, format, wanted):
    if text == "number":
        return {"type": "integer" if format.startswith("int") else "number"}
    if text in PLAIN:
        return PLAIN[text]
    found = re.fullmatch(r"Array<(.*)>", text)
    if found:
        return {"type": "array", "items": type_of(found.group(1), format, wanted)}
    found = re.fullmatch(r"\{ \[key: string\]: (.*); \}", text)
    if found:
        return {"type": "object", "additionalProperties": type_of(found.group(1), format, wanted)}
    wanted.append(text)
    return {"$ref": f"#/definitions/{text}"}


def definition(models, name, wanted):
    needed = re.findall(r"^    '(\w+)': ", (models / f"{name}.d.ts").read_text(), re.MULTILINE)
    properties, required = {}, []
    for field, base, kind, format in FIELD.findall((models / f"{name}.js").read_text()):
        properties[base] = type_of(kind, format, wanted)
        if field in needed:
            required.append(base)
    assert properties, name
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), "additionalProperties": False}


def main():
    models = pathlib.Path(sys.argv[1])
    made, wanted = {}, [name for _, name in KINDS.values()]
    while wanted:
        name = wanted.pop()
        if name not in made:
            made[name] = definition(models, name, wanted)
    for kind, (version, name) in KINDS.items():
        made[name]["properties"].update(apiVersion={"enum": [version]}, kind={"enum": [kind]})
        made[name]["required"] = ["apiVersion", "kind", "metadata"] + made[name].get("required", [])
    version = json.loads((models.parents[2] / "package.json").read_text())
    print("{")
    print(f' "$comment": "By tests/kubernetes/derive.py from @kubernetes/client-node {version["version"]}, Copyright the Kubernetes Authors, {version["license"]}",')
    print(' "$schema": "http://json-schema.org/draft-07/schema#",')
    print(f' "kinds": {json.dumps({kind: name for kind, (_, name) in KINDS.items()})},')
    print(' "definitions": {')
    print(",\n".join(f'  "{name}": {json.dumps(made[name], separators=(",", ":"))}' for name in sorted(made)))
    print(" }\n}")


if __name__ == "__main__":
    main()
