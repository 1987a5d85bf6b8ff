"""Remarks in words: each has some, and each code a meaning."""

import pytest

from weighbridge.analysis import condition_remarks, remarks
from weighbridge.analysis.remarks import AboutEnvironment, ProgramErrors, Remark, RemarkCode
from weighbridge.report.text.remark_codes import CODES
from weighbridge.report.text.remarks import remark_text

KINDS = {
    each
    for module in (remarks, condition_remarks)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Remark) and each not in (Remark, AboutEnvironment)
}


@pytest.mark.parametrize("kind", sorted(KINDS, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_every_remark_has_a_code_and_words(kind: type[Remark]):
    assert kind.code in RemarkCode
    assert remark_text.dispatch(kind) is not remark_text.dispatch(Remark)


def test_every_code_has_a_meaning_and_a_remark():
    assert set(CODES) == set(RemarkCode) == {kind.code for kind in KINDS}
    assert ProgramErrors.code == "errors"


def test_a_remark_without_words_is_an_error():
    with pytest.raises(TypeError, match="Remark has no words"):
        remark_text(Remark())
