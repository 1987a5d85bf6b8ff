"""git(1) in a folder of the user, whatever repository the variables of this process name."""

PLACES = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
)  # fmt: skip
"""Variables that name a repository or a part of one (``git rev-parse --local-env-vars``). Hooks of git have them.

With them, git in another folder reads and changes the repository of the hook.
"""
WITHOUT_PLACES = ("env", *(word for name in PLACES for word in ("-u", name)))
"""The words in front of a command whose git uses the repository of its own folder."""
