#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"
#include "model/expression/expression.hpp"
#include "model/scenario/binding.hpp"
#include "model/scenario/placed.hpp"
#include "model/scenario/text_pattern.hpp"

namespace lockstep {

/// Every statement of a program, in the order of the reference page.
enum class StatementKind : uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  scatter,
  reduce,
  gather,
  all_to_all,
  send,
  recv,
  batch_isend_irecv,
  grouped,
  barrier,
  join,
  new_group,
  wait,
  wait_stream,
  synchronize,
  item,
  empty_cache,
  kernel,
  host,
  copy,
  let,
  append,
  del,
  assertion,
  branch,
  repeat,
  return_hook,
  raise,
  call,
  attempt,
  threads,
  thread,
  fit,
  validate,
  test,
  predict,
  forward,
  backward,
  optimizer_step,
  optimizer_closure,
  zero_grad,
  clip_gradients,
  lr_scheduler_step,
  no_sync,
  set_requires_gradient_sync,
  summon_full_params,
  toggle_model,
  log,
  log_dict,
  update,
  compute,
  reset,
  reduce_boolean_decision,
  save_checkpoint,
  state_dict,
  should_stop
};

/// "all_reduce", "if": as the scenario spells it.
std::string_view name_of(StatementKind kind);

/// torch.distributed's ReduceOp; `avg` divides by the size of the group.
enum class ReduceOp : uint8_t { sum, avg, product, min, max };

/// Where `copy` moves to.
struct CopyTarget {
  bool cpu = true;
  bool own = false;  ///< the rank's own device: `.to(self.device)`
  int64_t gpu = 0;   ///< when neither
};

/// Whether `forward` goes through the strategy's wrapper or past it.
enum class ForwardThrough : uint8_t { strategy, module };

/// Lightning's `gradient_clip_algorithm`.
enum class ClipAlgorithm : uint8_t { norm, value };

/// Where the data of a communication come from and go to.
struct CommunicationSpec {
  Given<Expression> tensor;
  Given<Expression> elements;
  Given<DType> dtype;
  Given<ReduceOp> op;
  Given<Expression> src;
  bool any_source = false;  ///< recv with `src: any`
  Given<Expression> dst;
  Given<Expression> tag;
  Given<bool> sync_grads;
  Given<TextPattern> name;  ///< under which ranks meet, over Horovod
  std::vector<Placed<Expression>> input_split_sizes;
  std::vector<Placed<Expression>> output_split_sizes;
};

/// Arguments of Lightning's `self.log`, from `log` and `log_dict`.
struct LogSpec {
  Given<std::string> name;
  Given<Expression> value;
  std::vector<Binding> dictionary;
  Given<bool> prog_bar;
  Given<bool> logger;
  Given<bool> on_step;
  Given<bool> on_epoch;
  Given<std::string> reduce_fx;
  Given<bool> sync_dist;
  Given<bool> rank_zero_only;
  Given<Expression> batch_size;
  Given<bool> add_dataloader_idx;
};

/// Arguments of `kernel`, `host`, `copy` and the stream statements.
struct DeviceWork {
  Given<Expression> time;
  Given<Expression> flops;
  Given<Expression> bytes;
  std::vector<Placed<std::string>> reads;
  std::vector<Placed<std::string>> writes;
  Given<Expression> tensor;
  Given<CopyTarget> to;
  Given<bool> non_blocking;
  Given<std::string> on;  ///< wait_stream: the stream that waits
};

/// One statement of a hook. The kind says which fields count; the others are empty.
struct Statement {
  StatementKind kind = StatementKind::barrier;
  SourcePlace place{};    ///< of the statement's name
  Given<std::string> at;  ///< the user's own place, "model.py:41"
  std::string hook;       ///< the hook it stands in

  Given<std::string> group;   ///< absent: `world`
  Given<std::string> stream;  ///< absent: `comm`, `compute` for kernels
  Given<bool> asynchronous;   ///< key `async`
  Given<std::string> result;  ///< key `as`

  CommunicationSpec communication;
  DeviceWork work;
  LogSpec log;

  std::vector<Placed<Expression>> ranks;  ///< new_group: a list of ranks, in its order
  Given<Expression> ranks_expression;     ///< new_group: an expression that gives the list
  Given<Expression> color;                ///< new_group
  Given<Time> timeout;                    ///< new_group

  Given<Expression> expression;   ///< item, assert, if, repeat, backward, should_stop, decision,
                                  ///< set_requires_gradient_sync,
                                  ///< gradient_clip_val, metric of a scheduler
  Given<std::string> text;        ///< raise
  std::vector<Binding> bindings;  ///< let, append

  /// then, do, no_sync, summon_full_params, and what grouped statements hold; of `threads` one
  /// statement per thread, of kind `thread`, which holds the statements of that thread
  std::vector<Statement> body;
  std::vector<Statement> otherwise;  ///< else, except

  /// wait: result; update, compute, reset: metric; call: function
  Given<std::string> name;
  Given<std::vector<std::string>> names;  ///< del
  Given<std::string> optimizer;    ///< optimizer_step, zero_grad, toggle_model, clip_gradients
  Given<ClipAlgorithm> algorithm;  ///< clip_gradients
  Given<int64_t> scheduler;        ///< lr_scheduler_step: its number
  Given<bool> set_to_none;         ///< zero_grad
  Given<Expression> sync_grad;     ///< toggle_model
  Given<Expression> preds;         ///< update
  Given<Expression> target;        ///< update
  Given<Expression> indexes;       ///< update of a retrieval metric
  Given<Expression> weight;        ///< update of a mean
  Given<bool> all;                 ///< reduce_boolean_decision
  std::vector<Placed<std::string>> skip;    ///< forward: layers that do not run
  Given<ForwardThrough> through;            ///< forward
  Given<std::vector<std::string>> modules;  ///< forward: which run, in order
  Given<double> loss_target;                ///< forward: what the loss compares with
  Given<std::string> checkpoint;            ///< fit: `ckpt_path`
};

}  // namespace lockstep
