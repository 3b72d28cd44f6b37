#include "model/scenario/statement.hpp"

#include <array>

namespace lockstep {

namespace {

/// In the order of StatementKind.
constexpr auto statement_names = std::to_array<std::string_view>({
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "scatter",
    "reduce",
    "gather",
    "all_to_all",
    "send",
    "recv",
    "batch_isend_irecv",
    "grouped",
    "barrier",
    "join",
    "new_group",
    "wait",
    "wait_stream",
    "synchronize",
    "item",
    "empty_cache",
    "kernel",
    "host",
    "copy",
    "let",
    "append",
    "del",
    "assert",
    "if",
    "repeat",
    "return",
    "raise",
    "call",
    "try",
    "threads",
    "thread",
    "fit",
    "validate",
    "test",
    "predict",
    "forward",
    "backward",
    "optimizer_step",
    "optimizer_closure",
    "zero_grad",
    "clip_gradients",
    "lr_scheduler_step",
    "no_sync",
    "set_requires_gradient_sync",
    "summon_full_params",
    "toggle_model",
    "log",
    "log_dict",
    "update",
    "compute",
    "reset",
    "reduce_boolean_decision",
    "save_checkpoint",
    "state_dict",
    "should_stop",
});

}  // namespace

std::string_view name_of(StatementKind kind) {
  static_assert(statement_names.size() == static_cast<size_t>(StatementKind::should_stop) + 1);
  return statement_names[static_cast<size_t>(kind)];
}

}  // namespace lockstep
