"""Plays the orders that pipeline_schedules.py has recorded: how long a pipeline takes if all stages
are alike, a stage's backward takes two forwards, and messages take no time.

  python3 tests/oracle/pipeline_message_times.py [RANKS [MICRO_BATCHES ..]]

Computations of a rank run in one stream, its messages in another (ProcessGroupNCCL has one for the
point-to-point calls of a communicator). A message begins when the computations and the messages
before it in its rank's order have ended, and ends when both sides have begun it. Prints the
makespan in units in which a rank computes 1 for all its forwards of one micro-batch, for the tests of
makespan_with_messages.
"""

import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "oracle" / "pipeline"
ACTION = re.compile(r"\(?(\d+)(SEND_F|SEND_B|RECV_F|RECV_B|F|B|I|W)(\d+)\)?$")
DURATIONS = {"F": 1, "B": 2, "I": 1, "W": 1}


def parsed(order):
    """(stage, kind, micro-batch) of each action of one rank."""
    return [(int(s), kind, int(m)) for s, kind, m in (ACTION.match(a).groups() for a in order.split())]


def brought(stage, kind, micro_batch):
    """The same for both sides of a message: what arrives at which stage."""
    content = kind[-1]
    toward = {"F": 1, "B": -1}[content] if kind.startswith("SEND") else 0
    return content, stage + toward, micro_batch


def receives(order):
    """The messages that a rank receives."""
    return {brought(*action) for action in order if action[1].startswith("RECV")}


def makespan(orders, stages_of_rank):
    begun, arrived, ends = {}, {}, {}  # by message and side; by message; of computations
    received = [receives(order) for order in orders]
    known = -1
    while known != len(begun) + len(arrived) + len(ends):
        known = len(begun) + len(arrived) + len(ends)
        for rank, order in enumerate(orders):
            play(rank, order, received[rank], stages_of_rank, (begun, arrived, ends))
    assert len(ends) == sum(len(kind) == 1 for order in orders for _, kind, _ in order)
    return max(ends.values())


def play(rank, order, received, stages_of_rank, times):
    """One pass over a rank's order, up to where computations or messages wait for other ranks."""
    begun, arrived, ends = times
    computed = messages = 0.0  # None: they wait
    for place, (stage, kind, micro_batch) in enumerate(order):
        if computed is None:
            return
        if len(kind) == 1:
            wanted = ("F" if kind == "F" else "B", stage, micro_batch)
            if kind == "W" or wanted not in received:
                ends[rank, place] = computed = computed + DURATIONS[kind] / stages_of_rank
            elif wanted in arrived:
                start = max(computed, arrived[wanted])
                ends[rank, place] = computed = start + DURATIONS[kind] / stages_of_rank
            else:
                computed = None
        elif messages is not None:
            message, side = brought(stage, kind, micro_batch), kind[:4]
            begun[message, side] = max(computed, messages)
            other = begun.get((message, "RECV" if side == "SEND" else "SEND"))
            if other is not None:
                arrived[message] = max(begun[message, side], other)
            messages = arrived.get(message)


def main():
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    micro_batches = [int(text) for text in sys.argv[2:]] or [8, 12]
    for path in sorted(FOLDER.glob("*.json")):
        for setting in json.loads(path.read_text())["settings"]:
            if (
                setting["ranks"] == ranks
                and setting["micro_batches"] in micro_batches
                and "with_messages" in setting
            ):
                each = setting["stages"] // ranks
                orders = [parsed(order) for order in setting["with_messages"]]
                print(
                    f"{path.stem}: {ranks} ranks, {each} stages each, "
                    f"{setting['micro_batches']} micro-batches: {makespan(orders, each):g}"
                )


if __name__ == "__main__":
    main()
