// Pages of the codes of hangs and mismatches.
#include "explain/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page hang_pages_table[] = {
    {"LS101", "some rank never reaches a call that the others make",
     R"page(
What   A collective completes when every member of its group has called it. Some ranks of the
       group never reach this statement: a guard (`if rank == 0`), a skipped hook, an early return,
       an exception on one rank, or a rank that was lost.
Seen   The ranks that called wait. With NCCL the GPUs show full use and no error until the
       watchdog ends the job (after 30 minutes under most strategies of Lightning, else after
       torch's own 10); Gloo raises after 30 minutes.
       When the absent ranks go on to another call, NCCL pairs the two by position.
Fix    Let every rank make the call; guard only what one rank must do alone: printing, logging,
       writing a file. A barrier before and after does not help where the call itself is
       guarded.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {outputs: "full(4, 1.0)"}
    - if: is_global_zero
      then: [{all_gather: {tensor: outputs, as: gathered}}]       # move it in front of the `if`
)page"},
    {"LS102", "ranks make a call a different number of times",
     R"page(
What   Every rank reaches the statement, but some more often than others: a loop over data or a
       list of different length, or a `while` that ends by local data.
Seen   The ranks with more iterations wait in the first call that the others do not make, often
       at the end of an epoch, long after the cause.
Fix    Give all ranks the same number of iterations (drop_last, a sampler that pads), or agree
       before each iteration whether there is another one:
         - {reduce_boolean_decision: {value: more, all: true, as: all_have_more}}
       With Lightning up to 2.5.2 `join: true` of DDPStrategy helps too; later versions broadcast
       before every batch, which Join does not repeat.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {batches: 10 + (rank == 0), batch_size: 4}}           # rank 0 waits in step 11
)page"},
    {"LS103", "ranks make the same calls in a different order",
     R"page(
What   Collectives of one group are matched by position, not by name. Two ranks make the same
       calls, but in a different order: iteration over a set or a dictionary, callbacks in different
       order, the two branches of an `if`.
Seen   A hang; or the calls complete, but each rank receives the result of the other call.
Fix    Call in one order on all ranks: iterate over sorted keys.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {a: "full(4, 1.0)", b: "full(4, 2.0)"}
    - if: rank == 0
      then: [{all_reduce: a}, {all_reduce: b}]
      else: [{all_reduce: b}, {all_reduce: a}]                    # a gets b's sum
)page"},
    {"LS104", "ranks make one call with different arguments",
     R"page(
What   Shape, dtype, root, reduction or splits of one collective differ between ranks.
Seen   NCCL does not compare arguments: sizes that differ hang or overwrite memory, a different
       root or reduction gives a wrong value. Gloo ends a process that receives more bytes than
       it asked for (SIGABRT) and accepts fewer without an error; calls with different roots never
       meet.
Fix    Agree on the size first, pad to the longest, cut afterwards; use one root on all ranks.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(10 + rank, 1.0)"}                            # sizes differ
    - all_gather: {tensor: x, as: all}
)page"},
    {"LS105", "ranks make or use groups differently",
     R"page(
What   Creating a group is itself a collective of all ranks of the parent. Every rank must call
       it, with the same members and in the same order, whether it becomes a member or not. A
       rank that never reaches the statement is LS101.
Seen   The ranks that called wait; or ranks hold different groups under one name.
Fix    Call new_group on every rank, with the same list.
)page",
     R"page(
version: 1
cluster: {ranks: 4, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - if: rank == 0
      then: [{new_group: {ranks: [0, 1], as: low}}, {new_group: {ranks: [2, 3], as: high}}]
      else: [{new_group: {ranks: [2, 3], as: high}}, {new_group: {ranks: [0, 1], as: low}}]
)page"},
    {"LS106", "calls of two groups are made in a different order",
     R"page(
What   The calls within each group are in order, but one rank calls group A before group B and
       another rank B before A, and the second call has to wait for the first, on the host or on
       one stream. On streams of their own both kernels of NCCL may run at once: a warning.
Seen   A circular wait that no single group shows. The warning depends on the GPU: it hangs
       where both kernels do not fit onto it. NCCL before 2.26 asks for one order of all groups'
       calls on every rank; later NCCL_LAUNCH_ORDER_IMPLICIT=1 keeps the order of the host.
Fix    Use one order over all groups on every rank, and do not wait on the host between them on
       some ranks only.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(4, 1.0)", y: "full(4, 2.0)"}
    - new_group: {ranks: [0, 1], as: a}
    - new_group: {ranks: [0, 1], as: b}
    - if: rank == 0
      then: [{all_reduce: {tensor: x, group: a}}, {all_reduce: {tensor: y, group: b}}]
      else: [{all_reduce: {tensor: y, group: b}}, {all_reduce: {tensor: x, group: a}}]
)page"},
    {"LS107", "sends and receives wait for each other in a circle",
     R"page(
What   Each rank of a circle waits in a receive whose sender waits too. If all of them send
       first, buffered sends would resolve the circle: that is LS108.
Seen   All of them wait.
Fix    Let one side send while the other receives, or issue each pair as one:
         - batch_isend_irecv: [{send: {tensor: x, dst: 1}}, {recv: {tensor: y, src: 1}}]
       Both sides of a message need the same tag; if they differ, the finding says so.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(4, 1.0)", y: "full(4, 2.0)"}
    - recv: {tensor: y, src: 1 - rank}                            # every rank receives first
    - send: {tensor: x, dst: 1 - rank}
)page"},
    {"LS108", "the program completes only if sends are buffered",
     R"page(
What   Every rank sends before it receives. The run completes only if sends return before they
       are received (a warning). With NCCL, a larger message or a smaller eager limit it hangs
       (an error).
Fix    As for LS107: do not rely on buffering.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
process_group: {backend: gloo, eager_limit: 64 KiB}               # hides the circle
program:
  main:
    - let: {x: "full(4, 1.0)", y: "full(4, 2.0)"}
    - send: {tensor: x, dst: 1 - rank}                            # every rank sends first
    - recv: {tensor: y, src: 1 - rank}
)page"},
    {"LS109", "ranks decide differently from their own data",
     R"page(
What   A branch, a number of iterations or an early stop depends on a value that each rank
       computed separately, and communication follows.
Seen   Runs fine until the values differ once; then like LS101 or LS102.
       Or EarlyStopping, ModelCheckpoint or a scheduler that monitors a metric which each rank
       logs from its own samples: the best checkpoint or the learning rate then depends on the rank.
Fix    Log the monitored value with sync_dist: true. Decide once for all ranks, then branch on it:
         - {reduce_boolean_decision: {value: loss > 10, all: false, as: bad}}
         - {if: bad, then: [{all_reduce: loss}]}
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {loss: "full(1, 20.0 * rank)"}
    - if: sum(loss) > 10                                          # true only on rank 1
      then: [{all_reduce: loss}]
)page"},
};

std::span<const Page> hang_pages() { return hang_pages_table; }

}  // namespace lockstep::cli
