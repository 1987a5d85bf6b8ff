"""What each code of a remark means, for the page."""

from weighbridge.analysis.remarks import RemarkCode as Code

CODES = {
    Code.AA: "the row is the baseline measured a second time",
    Code.NO_BLOCKS: "no block has a value of both sides, so there is no cost",
    Code.ONE_BLOCK: "a single block: no interval can be given",
    Code.EXPLORATORY: "fewer than ten blocks: the interval leans on normality",
    Code.INCOMPLETE: "fewer blocks than were planned or tried",
    Code.EXTENDED: (
        "the number of blocks was changed after looking: intervals and p-values are those of a further look"
    ),
    Code.TARGET: "the precision that the study asked for was not reached",
    Code.DIFFERENCE: "the cost is a difference in the unit: a count, a share, beyond a baseline, or a value was zero",
    Code.HOLM: "the interval excludes no cost, but not after correction for the number of comparisons",
    Code.NOISE: "the cost is no larger than the noise floor that the A/A arm shows for this metric: never different",
    Code.IDENTICAL: (
        "every block says the same, but so few blocks may do so by chance: neither different nor equivalent"
    ),
    Code.STALLS: "the arithmetic cost's interval excludes the typical cost: a few runs are far from the others",
    Code.SELECTED: (
        "more than one of ten trials failed: the cost is that of the runs that succeeded, never equivalent"
    ),
    Code.OUTLIERS: "values further than 5 * 1.4826 MAD from the median (kept); from eight values on",
    Code.DRIFT: "values rise or fall in the order in which they ran (Kendall's tau, p < 0.01)",
    Code.AUTOCORRELATION: "successive values resemble one another (rank von Neumann ratio, p < 0.01)",
    Code.BROKE: (
        "the load was more than the server bears: a result, never equivalent; the cost is that of other blocks"
    ),
    Code.FAILED: "trials that gave no measurement",
    Code.ERRORS: "trials whose program reported errors beside its result",
    Code.TRIAL: "trials that were flagged when they ran (steal, throttling, pressure, saturation)",
    Code.READINGS: (
        "the trials are so short that the meters read only a few times in each: means and peaks are chance"
    ),
    Code.UNRESOLVED: "memory per site is zero or less in some trials: less than the machine's own memory varies",
    Code.PACKET_SIZE: "measured with other packet sizes than the baseline: part of the cost may be theirs",
    Code.CAPPED: "a limit, such as a full cable, held one of the two sides back and not the other: part of the cost",
    Code.FRAGMENTS: "one side's datagrams are larger than its path carries in one piece: that is part of the cost",
    Code.PATH: (
        "its network path differs from the baseline's besides the isolation: part of the cost may be the path's"
    ),
    Code.NO_PATH: "the network path of one of the two is not known: never different, never equivalent",
    Code.INTERRUPT_TIME: "a site's own CPU time leaves out the network stack's interrupts here: read cpu_all_per_*",
    Code.DURABILITY: "it keeps less, or more, of what it acknowledged than the baseline does: never equivalent",
    Code.CONFOUNDER: (
        "something besides the isolation differs: versions, limits that could not be honoured, what is not metered"
    ),
    Code.EMULATED: (
        "measured under emulation: the cost is the emulator's, or of emulated against emulated: not real hardware's"
    ),
    Code.UNVERIFIED: "an environment or a host of a kind that was never seen to work on real hardware",
    Code.NESTED: "measured on a host that is itself a guest: the cost is one inside of that machine",
    Code.GUEST_TICKS: "CPU time as an emulated host counts it, which may hold time in which it was not let run",
}
"""Every code with its meaning. Remarks themselves are worded in `weighbridge.report.text.remarks`."""
