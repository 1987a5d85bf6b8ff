"""Distribution functions and quantiles: normal, Student's t, beta and chi-square.

scipy has all of them, but importing `scipy.special` takes longer than the report of a small run. The tests compare
this module with scipy. If an argument is nan, so is the result.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_STANDARD = NormalDist()
_TINY = 1e-300
_DIGITS = 1e-16
_MOST_STEPS = 10_000


def _any_nan(*values: float) -> bool:
    return any(map(math.isnan, values))


def normal_cdf(value: float) -> float:
    """Return the probability that a standard normal value is at most ``value``."""
    return 0.5 * math.erfc(-value / math.sqrt(2))


@lru_cache(maxsize=1024)
def normal_quantile(probability: float) -> float:
    """Return the quantile of the standard normal distribution; infinite at 0 and 1."""
    if _any_nan(probability):
        return math.nan
    if probability <= 0 or probability >= 1:
        return math.copysign(math.inf, probability - 0.5)
    return _STANDARD.inv_cdf(probability)


# -- beta, and Student's t ------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def beta_cdf(a: float, b: float, value: float) -> float:
    """Return the regularised incomplete beta function (DLMF 8.17)."""
    if _any_nan(a, b, value):
        return math.nan
    if value <= 0 or value >= 1:
        return 0.0 if value <= 0 else 1.0
    if value > (a + 1) / (a + b + 2):
        return 1 - _beta_tail(b, a, 1 - value, value)
    return _beta_tail(a, b, value, 1 - value)


def _beta_tail(a: float, b: float, x: float, rest: float) -> float:
    """Return the function of ``x`` by its continued fraction (DLMF 8.17.22), which converges fast below the mean.

    ``rest`` is 1 - ``x``. The fraction is evaluated by Lentz's method.
    """
    factor = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or _TINY)
    fraction = d
    for m in range(1, _MOST_STEPS):
        double = a + 2 * m
        even = m * (b - m) * x / ((double - 1) * double)
        d = 1 / ((1 + even * d) or _TINY)
        c = (1 + even / c) or _TINY
        fraction *= d * c
        odd = -(a + m) * (a + b + m) * x / (double * (double + 1))
        d = 1 / ((1 + odd * d) or _TINY)
        c = (1 + odd / c) or _TINY
        fraction *= d * c
        if abs(d * c - 1) <= 2 * _DIGITS:
            break
    return factor * fraction / a


@lru_cache(maxsize=4096)
def beta_quantile(a: float, b: float, probability: float) -> float:
    """Return the quantile of the beta distribution."""
    if _any_nan(a, b, probability):
        return math.nan
    if probability <= 0 or probability >= 1:
        return 0.0 if probability <= 0 else 1.0
    if a == 1:
        return -math.expm1(math.log1p(-probability) / b)
    if b == 1:
        return math.exp(math.log(probability) / a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def density(x: float) -> float:
        return math.exp(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))

    return _solution(lambda x: beta_cdf(a, b, x) - probability, density, a / (a + b), 0.0, 1.0)


@lru_cache(maxsize=4096)
def t_cdf(degrees: float, value: float) -> float:
    """Return the probability that Student's t is at most ``value``."""
    if _any_nan(degrees, value):
        return math.nan
    square = value * value
    if not 0 < square < math.inf:
        return 0.5 if square == 0 else float(value > 0)
    far, near = degrees / (degrees + square), square / (degrees + square)
    if square <= 3 * degrees / (degrees + 2):
        return 0.5 + math.copysign(0.5 * _beta_tail(0.5, degrees / 2, near, far), value)
    tail = 0.5 * _beta_tail(degrees / 2, 0.5, far, near)
    return tail if value < 0 else 1 - tail


@lru_cache(maxsize=4096)
def t_quantile_at(degrees: float, probability: float) -> float:
    """Return the quantile of Student's t; infinite at 0 and 1."""
    if _any_nan(degrees, probability):
        return math.nan
    if probability <= 0 or probability >= 1 or probability == 0.5:
        return normal_quantile(probability)
    tail = min(probability, 1 - probability)
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)

    def density(t: float) -> float:
        return math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))

    # the expansion for many degrees of freedom (Abramowitz & Stegun 26.7.5)
    z = -normal_quantile(tail)
    start = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    found = _solution(lambda t: tail - t_cdf(degrees, -t), density, start, 0.0, math.inf)
    return math.copysign(found, probability - 0.5)


# -- chi-square ----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def chi_square_quantile(degrees: float, probability: float) -> float:
    """Return the quantile of the chi-square distribution."""
    if _any_nan(degrees, probability):
        return math.nan
    if probability <= 0 or probability >= 1:
        return 0.0 if probability <= 0 else math.inf
    shape = degrees / 2
    scale = -math.lgamma(shape)

    def density(x: float) -> float:
        return math.exp(scale + (shape - 1) * math.log(x) - x)

    # Wilson and Hilferty, PNAS 17 (1931)
    cube = 1 - 1 / (9 * shape) + normal_quantile(probability) / (3 * math.sqrt(shape))
    start = shape * max(cube, 0.01) ** 3
    return 2 * _solution(lambda x: _gamma_cdf(shape, x) - probability, density, start, 0.0, math.inf)


def _gamma_cdf(shape: float, value: float) -> float:
    """Return the regularised incomplete gamma function: its series, or its continued fraction (DLMF 8.7.1, 8.9.2)."""
    factor = math.exp(shape * math.log(value) - value - math.lgamma(shape))
    if value < shape + 1:
        term = total = 1 / shape
        for n in range(1, _MOST_STEPS):
            term *= value / (shape + n)
            total += term
            if term <= total * _DIGITS:
                break
        return factor * total
    b = value + 1 - shape
    c, d = 1 / _TINY, 1 / b
    fraction = d
    for n in range(1, _MOST_STEPS):
        numerator, b = -n * (n - shape), b + 2
        d = 1 / ((numerator * d + b) or _TINY)
        c = (b + numerator / c) or _TINY
        fraction *= d * c
        if abs(d * c - 1) <= 2 * _DIGITS:
            break
    return 1 - factor * fraction


def _solution(
    function: Callable[[float], float], slope: Callable[[float], float], start: float, low: float, high: float
) -> float:
    """Return the zero of a rising function between two limits, by Newton's method within bounds."""
    x = start
    for _ in range(200):
        value = function(x)
        if value > 0:
            high = x
        else:
            low = x
        rise = slope(x)
        following = x - value / rise if rise > 0 else math.nan
        if not low <= following <= high:
            following = (low + high) / 2 if high < math.inf else 2 * x + 1
        if abs(following - x) <= 1e-9 * abs(following):  # the next error is about the square of this one
            return following
        x = following
    return x
