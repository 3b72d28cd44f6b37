"""Records the schedules of torch.distributed.pipelining: what every rank computes, in order, and
where each message is begun.

  ./dev oracle pipeline-schedules [--check]

torch makes a schedule from the numbers of ranks, stages and micro-batches alone, so no process is
started: the stages here know only their numbers, and what GPipe and 1F1B do, which have no table,
is written down as they run over such stages. Written to tests/data/oracle/pipeline/NAME.json,
an action as torch writes it: "1F0" is the forward of micro-batch 0 in stage 1, B a whole backward,
I and W the gradients of input and weights, "1SEND_F0" its message to the next stage, "(1SEND_F0;1RECV_B0)" one batch of messages. torch runs the
two actions of an OVERLAP_F_B one after the other (_perform_action), and so they stand here. Slots
in which a rank waits are left out, as they are no part of what it does.
"""

import itertools
import json
import pathlib
import sys
import types

import torch
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "oracle" / "pipeline"

# Stages of a rank; schedules in the shape of a V have two.
STAGES = {
    "GPipe": (1,),
    "1F1B": (1,),
    "Interleaved1F1B": (1, 2, 3),
    "LoopedBFS": (1, 2, 3),
    "InterleavedZeroBubble": (1, 2, 3),
    "ZBVZeroBubble": (2,),
    "DualPipeV": (2,),
}
IN_A_V = ("ZBVZeroBubble", "DualPipeV")
RANKS = (2, 3, 4)
MICRO_BATCHES = (1, 2, 3, 4, 6, 8, 9, 11, 12)


class Stage(types.SimpleNamespace):
    """Notes what it is asked to compute, and names its messages."""

    def forward_one_chunk(self, micro_batch, *_, **__):
        self.did.append(f"{self.stage_index}F{micro_batch}")

    def backward_one_chunk(self, micro_batch, **_):
        self.did.append(f"{self.stage_index}B{micro_batch}")

    def _messages(self, kind, micro_batch, has_peer):
        return [f"{self.stage_index}{kind}{micro_batch}"] if has_peer else []

    def get_fwd_recv_ops(self, micro_batch):
        return self._messages("RECV_F", micro_batch, not self.is_first)

    def get_fwd_send_ops(self, micro_batch):
        return self._messages("SEND_F", micro_batch, not self.is_last)

    def get_bwd_recv_ops(self, micro_batch):
        return self._messages("RECV_B", micro_batch, not self.is_last)

    def get_bwd_send_ops(self, micro_batch):
        return self._messages("SEND_B", micro_batch, not self.is_first)

    def perform_reduce_grad(self, _):
        pass


def run_of_single_stage(schedule, stage):
    """What a schedule without a table does."""

    def begin(messages, desc=None):
        if messages:
            stage.did.append(f"({';'.join(messages)})")
        return []

    schedules._batch_p2p = begin
    schedules._sorted_batch_p2p = lambda messages, desc=None: {0: begin(messages)}
    schedules._wait_batch_p2p = lambda work: None
    schedule._initialize_stage = lambda *_: None
    schedule._step_microbatches()
    return " ".join(stage.did)


def stage_of(index, ranks, stages, rank):
    return Stage(
        did=[],
        stage_index=index,
        num_stages=stages,
        group_size=ranks,
        group_rank=rank,
        is_first=index == 0,
        is_last=index + 1 == stages,
        submod=torch.nn.Identity(),
        has_backward=True,
        stage_index_to_group_rank={},
    )


def flat(actions):
    for action in actions:
        if action is None or action.computation_type in (
            schedules.UNSHARD,
            schedules.RESHARD,
            schedules.REDUCE_GRAD,
        ):
            continue
        yield from flat(action.sub_actions) if action.sub_actions else [str(action)]


def recorded(name, ranks, each, micro_batches):
    """Of all ranks; the first one's schedule object knows them all."""
    stages = ranks * each
    style = "v" if name in IN_A_V else "loop"
    own = [s for s, r in generate_stage_to_rank_mapping(ranks, stages, style).items() if r == 0]
    made = [stage_of(index, ranks, stages, 0) for index in own]
    setting = {"ranks": ranks, "stages": stages, "micro_batches": micro_batches}
    try:
        kind = schedules.get_schedule_class(name)
        if issubclass(kind, schedules.PipelineScheduleSingle):
            each_stage = [stage_of(index, ranks, stages, index) for index in range(ranks)]
            runs = [run_of_single_stage(kind(one, micro_batches), one) for one in each_stage]
            setting["actions"] = runs
        else:
            schedule = kind(made, micro_batches)
            setting["actions"] = [" ".join(flat(schedule.pipeline_order[r])) for r in range(ranks)]
            with_messages = schedule.pipeline_order_with_comms
            setting["with_messages"] = [" ".join(flat(with_messages[r])) for r in range(ranks)]
    except (ValueError, AssertionError) as refused:
        setting["refused"] = str(refused)
    return setting


def main():
    differ = []
    for name, numbers in STAGES.items():
        settings = [recorded(name, *shape) for shape in itertools.product(RANKS, numbers, MICRO_BATCHES)]
        rows = ",\n".join(json.dumps(setting) for setting in settings)
        text = f'{{"schedule": "{name}", "torch": "{torch.__version__}", "settings": [\n{rows}\n]}}\n'
        path = FOLDER / f"{name}.json"
        if "--check" not in sys.argv:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differ.append(name)
    print(f"differ: {', '.join(differ)}" if differ else f"{len(STAGES)} schedules")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
