"""`weighbridge skill`."""

from importlib import resources

from weighbridge.cli.commands.agents import SkillOptions
from weighbridge.cli.documents import SkillDocument
from weighbridge.cli.output import print_json


def skill(options: SkillOptions) -> None:
    """Print the instructions for coding agents."""
    text = resources.files("weighbridge.cli").joinpath("SKILL.md").read_text()
    if options.as_json:
        print_json(SkillDocument(text=text))
    else:
        print(text, end="", flush=True)
