"""bonnie: what bonnie++ cannot tell is no figure, and a line about something else is none either."""

from weighbridge.workloads.bonnie import PLUGIN, BonnieOptions

from .captured import AT


def test_the_command():
    argv = PLUGIN.command("solo", BonnieOptions.model_validate({"file_size": "512MiB", "files": 0}), AT).argv
    assert argv[argv.index("-s") + 1] == "512M:8192" and argv[argv.index("-n") + 1] == "0" and "-b" not in argv
    assert "-b" in PLUGIN.command("solo", BonnieOptions(sync_small=True), AT).argv
    assert [metric.name for metric in PLUGIN.metrics(BonnieOptions(files=0))][-1] == "seeks"
