"""One rank's training under FairScale's wrappers."""

from sharded_strategy import Strategy


class FairScale(Strategy):
    family = "fairscale"


class FairScaleFsdp(Strategy):
    family = "fairscale_fsdp"
