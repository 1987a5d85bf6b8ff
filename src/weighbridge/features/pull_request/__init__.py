"""Posts a run as one comment on a pull request of GitHub or a merge request of GitLab."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(
    commands={"comment": "weighbridge.features.pull_request.options:COMMENT"},
    after="gate",
    documents={"comment": "weighbridge.features.pull_request.document:CommentDocument"},
)
