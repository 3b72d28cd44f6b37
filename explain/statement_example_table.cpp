#include "explain/key_example_table.hpp"

namespace lockstep::cli {

namespace {

constexpr StatementExample statements[] = {
    {"all_reduce",
     "  main:\n    - let: {x: \"full(2, 1.0 + rank)\"}\n    - all_reduce: x\n    - assert: x[0] == "
     "3",
     true},
    {"reduce_scatter",
     "  main:\n    - let: {x: \"full(4, 1.0)\"}\n    - reduce_scatter: {tensor: x, as: part}\n    "
     "- assert: len(part) == 2",
     true},
    {"all_gather",
     "  main:\n    - let: {x: \"full(2, 1.0 * rank)\"}\n    - all_gather: {tensor: x, as: all}\n   "
     " - assert: mean(all[1]) == 1",
     true},
    {"broadcast",
     "  main:\n    - let: {x: \"full(2, 1.0 * rank)\"}\n    - broadcast: {tensor: x, src: 1}\n    "
     "- assert: x[0] == 1",
     true},
    {"scatter",
     "  main:\n    - let: {x: arange(4)}\n    - scatter: {tensor: x, src: 0, as: part}\n    - "
     "assert: len(part) == 2",
     true},
    {"reduce",
     "  main:\n    - let: {x: \"full(2, 1.0)\"}\n    - reduce: {tensor: x, dst: 0}\n    - assert: "
     "rank != 0 or sum(x) == 4",
     true},
    {"gather",
     "  main:\n    - let: {x: \"full(2, 1.0 * rank)\"}\n    - gather: {tensor: x, dst: 0, as: all}",
     true},
    {"all_to_all",
     "  main:\n    - let: {x: arange(4)}\n    - all_to_all: {tensor: x, as: parts}\n    - assert: "
     "len(parts) == 4",
     true},
    {"send",
     "  main:\n    - let: {x: \"full(2, 1.0)\"}\n    - if: rank == 0\n      then: [{send: {tensor: "
     "x, dst: 1}}]\n      else: [{recv: {tensor: x, src: 0}}]",
     true},
    {"recv",
     "  main:\n    - let: {x: \"full(2, 1.0 * rank)\"}\n    - if: rank == 0\n      then: [{recv: "
     "{tensor: x, src: 1}}]\n      else: [{send: {tensor: x, dst: 0}}]\n    - assert: x[0] == 1",
     true},
    {"batch_isend_irecv",
     "  main:\n    - let: {x: \"full(2, 1.0)\", y: \"full(2, 0.0)\"}\n    - batch_isend_irecv: "
     "[{send: {tensor: x, dst: 1 - rank}}, {recv: {tensor: y, src: 1 - rank}}]\n    - assert: y[0] "
     "== 1",
     true},
    {"grouped",
     "  main:\n    - let: {x: \"full(2, 1.0)\", y: \"full(2, 1.0)\"}\n    - grouped: [{all_reduce: "
     "x}, {all_reduce: y}]",
     true},
    {"barrier",
     "  main:\n    - barrier: {async: true, as: meeting}\n    - host: 1 ms\n    - wait: "
     "meeting",
     true},
    {"join",
     "  main:\n    - let: {x: \"full(2, 1.0)\"}\n    - if: rank == 0\n      then: [{all_reduce: "
     "{tensor: x, name: gradient}}]\n    - join\nprocess_group: {backend: horovod}",
     true},
    {"new_group",
     "  main:\n    - new_group: {ranks: [0, 1], as: pair}\n    - all_reduce: {elements: 1000, "
     "group: pair}",
     true},
    {"wait",
     "  main:\n    - let: {x: \"full(2, 1.0)\"}\n    - all_reduce: {tensor: x, async: true}\n    - "
     "wait: x\n    - assert: x[0] == 2",
     true},
    {"wait_stream",
     "  main:\n    - kernel: {time: 1 ms, stream: side}\n    - wait_stream: {stream: side, on: "
     "compute}\n    - kernel: 1 ms",
     true},
    {"synchronize", "  main:\n    - kernel: 1 ms\n    - synchronize", true},
    {"item",
     "  main:\n    - let: {x: \"full(1, 3.0)\"}\n    - item: {value: x, as: number}\n    - assert: "
     "number == 3",
     true},
    {"empty_cache", "  main:\n    - kernel: 1 ms\n    - empty_cache", true},
    {"kernel", "  main:\n    - kernel: {flops: 1 TFLOP}", true},
    {"host", "  main:\n    - host: 1 ms", true},
    {"copy",
     "  main:\n    - let: {x: \"full(2, 1.0)\"}\n    - copy: {tensor: x, to: cpu, as: y}\n    - "
     "assert: y[0] == 1",
     true},
    {"let", "  main:\n    - let: {x: 2 * rank}\n    - assert: x == 2 * rank", true},
    {"append",
     "  main:\n    - append: {kept: rank}\n    - append: {kept: rank + 1}\n    - assert: len(kept) "
     "== 2",
     true},
    {"del",
     "  main:\n    - let: {x: \"full(2, 1.0)\"}\n    - kernel: {time: 1 ms, stream: side, reads: "
     "[x]}\n    - wait_stream: {stream: side, on: compute}\n    - del: x",
     true},
    {"assert", "  main:\n    - assert: world_size == 2", true},
    {"if", "  main:\n    - if: rank == 0\n      then: [{host: 1 ms}]\n    - barrier", true},
    {"repeat",
     "  main:\n    - repeat: 3\n      as: turn\n      do: [{all_reduce: {elements: 1000}}]", true},
    {"return", "  main:\n    - barrier\n    - return", true},
    {"raise", "  main:\n    - if: world_size > 2\n      then: [{raise: too many ranks}]", true},
    {"call",
     "  functions:\n    share:\n      - all_reduce: x\n      - return\n  main:\n    - let: {x: "
     "\"full(2, 1.0)\"}\n    - call: share\n    - assert: x[0] == 2",
     true},
    {"try",
     "  main:\n    - try:\n        do: [{raise: no such file}]\n        except: [{let: {found: "
     "false}}]\n    - assert: not found\n    - barrier",
     true},
    {"threads",
     "  main:\n    - threads:\n        - [{all_reduce: {elements: 1000}}]\n        - [{host: 1 "
     "ms}]",
     true},
    {"fit", "  main: [fit]"},
    {"validate", "  main: [fit, validate]", false,
     "data: {train: {samples: 64}, val: {samples: 32}}"},
    {"test", "  main: [fit, test]", false, "data: {train: {samples: 64}, test: {samples: 32}}"},
    {"predict", "  main: [predict]", false, "data: {predict: {samples: 32}}"},
    {"forward", "  training_step:\n    - forward\n    - log: {name: loss, value: loss}"},
    {"backward",
     "  automatic_optimization: false\n  training_step: [forward, {backward: 0.5 * loss}, "
     "optimizer_step, zero_grad]"},
    {"optimizer_step",
     "  automatic_optimization: false\n  training_step: [forward, {backward: loss}, "
     "optimizer_step, zero_grad]"},
    {"optimizer_closure",
     "  optimizer_step:\n    - if: batch_idx % 2 == 0\n      then: [optimizer_step]\n      else: "
     "[optimizer_closure]"},
    {"zero_grad",
     "  automatic_optimization: false\n  training_step: [zero_grad, forward, {backward: loss}, "
     "optimizer_step]"},
    {"clip_gradients",
     "  automatic_optimization: false\n  training_step: [zero_grad, forward, {backward: loss}, "
     "{clip_gradients: 0.5}, optimizer_step]"},
    {"lr_scheduler_step",
     "  automatic_optimization: false\n  training_step: [zero_grad, forward, {backward: loss}, "
     "optimizer_step, lr_scheduler_step]",
     false, "lr_scheduler: {StepLR: {step_size: 2}}"},
    {"no_sync",
     "  automatic_optimization: false\n  training_step:\n    - no_sync: [forward, {backward: "
     "loss}]\n    - forward\n    - backward: loss\n    - optimizer_step\n    - zero_grad"},
    {"set_requires_gradient_sync",
     "  training_step:\n    - set_requires_gradient_sync: batch_idx % 2 == 1\n    - forward", false,
     "trainer: {devices: 4, max_epochs: 1, accumulate_grad_batches: 2, strategy: "
     "{ModelParallelStrategy: {data_parallel_size: "
     "4, tensor_parallel_size: 1, fully_shard: {modules: blocks}}}}"},
    {"summon_full_params",
     "  on_train_epoch_end:\n    - summon_full_params:\n        - host: 1 ms"},
    {"toggle_model",
     "  automatic_optimization: false\n  training_step:\n    - toggle_model:\n        do: "
     "[forward, {backward: loss}, optimizer_step, zero_grad]"},
    {"log",
     "  training_step:\n    - forward\n    - log: {name: train_loss, value: loss, on_epoch: true, "
     "sync_dist: true}"},
    {"log_dict",
     "  training_step:\n    - forward\n    - log_dict: {dictionary: {loss: loss, twice: 2 * loss}, "
     "on_epoch: true, sync_dist: true}"},
    {"update", "  validation_step:\n    - update: f1\n    - log: {name: val_f1, value: f1}", false,
     "metrics: {f1: BinaryF1Score}"},
    {"compute",
     "  validation_step: [{update: f1}]\n  on_validation_epoch_end:\n    - compute: {metric: f1, "
     "as: value}\n    - log: {name: val_f1, value: value}\n    - reset: f1",
     false, "metrics: {f1: BinaryF1Score}"},
    {"reset",
     "  validation_step: [{update: f1}]\n  on_validation_epoch_end:\n    - compute: {metric: f1, "
     "as: value}\n    - reset: f1",
     false, "metrics: {f1: BinaryF1Score}"},
    {"reduce_boolean_decision",
     "  on_train_epoch_end:\n    - reduce_boolean_decision: {value: rank == 0, all: false, as: "
     "stop}\n    - should_stop: stop"},
    {"save_checkpoint", "  on_train_epoch_end: [save_checkpoint]"},
    {"state_dict", "  on_train_epoch_end: [state_dict]"},
    {"should_stop", "  on_train_epoch_end: [{should_stop: epoch == 0}]"},
};

}  // namespace

std::span<const StatementExample> statement_examples() { return statements; }

}  // namespace lockstep::cli
