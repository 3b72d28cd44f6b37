"""Communication hooks of DistributedDataParallel and the averaging of models, as Lightning's
arguments name them."""

import torch.distributed
from torch.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

MODULES = (default_hooks, powerSGD_hook, post_localSGD_hook, debugging_hooks)
ARGUMENTS = ("ddp_comm_hook", "ddp_comm_state", "ddp_comm_wrapper", "model_averaging_period")


def named(name):
    return next(getattr(module, name) for module in MODULES if hasattr(module, name))


def state_of(arguments, ranks_per_node):
    if arguments is None:
        return None
    if "start_localSGD_iter" in arguments:
        subgroup, _ = torch.distributed.new_subgroups(ranks_per_node)  # on a CPU it has no default
        return post_localSGD_hook.PostLocalSGDState(None, subgroup, **arguments)
    return powerSGD_hook.PowerSGDState(None, **arguments)


class Hooks:
    """What a setting's hook arguments ask for; `options` keeps the others."""

    def __init__(self, options, ranks_per_node):
        self.asked = {name: options.pop(name) for name in ARGUMENTS if name in options}
        self.ranks_per_node = ranks_per_node
        self.averager = None

    def register(self, network):
        if not self.asked:
            return
        state = state_of(self.asked.get("ddp_comm_state"), self.ranks_per_node)
        hook = named(self.asked["ddp_comm_hook"])
        if "ddp_comm_wrapper" in self.asked:
            hook = named(self.asked["ddp_comm_wrapper"])(hook)
        network.register_comm_hook(state, hook)
        if "model_averaging_period" in self.asked:
            self.averager = PeriodicModelAverager(
                self.asked["model_averaging_period"], warmup_steps=state.start_localSGD_iter
            )

    def after_step(self, parameters):
        if self.averager:
            self.averager.average_parameters(iter([p for p in parameters if p.grad is not None]))
