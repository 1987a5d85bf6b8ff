"""The options and examples of skill, the command for coding agents."""

from dataclasses import dataclass

from weighbridge.cli.declared import Declared
from weighbridge.cli.options import json_flag


@dataclass(frozen=True, slots=True)
class SkillOptions:
    """Print SKILL.md: instructions for coding agents that measure with Weighbridge.

    Save them where your agent looks for skills, in a folder with the name 'weighbridge'.
    """

    as_json: bool = json_flag()


SKILL = Declared(
    "weighbridge.cli.skill:skill",
    SkillOptions,
    ("weighbridge skill", "weighbridge skill > skills/weighbridge/SKILL.md"),
    documents=("skill",),
)
