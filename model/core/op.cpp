#include "model/core/op.hpp"

namespace lockstep {

std::string_view name_of(OpKind kind) {
  constexpr std::string_view names[op_kind_count] = {
      "compute", "copy",      "all_reduce", "reduce_scatter", "all_gather", "broadcast",
      "reduce",  "gather",    "scatter",    "all_to_all",     "send",       "recv",
      "barrier", "new_group", "host",       "event"};
  return names[static_cast<int>(kind)];
}

std::string_view name_of(Purpose purpose) {
  constexpr std::string_view names[purpose_count] = {
      "parameter", "gradient", "optimizer_state", "activation", "communication",
      "workspace", "input",    "metric",          "gathered"};
  return names[static_cast<int>(purpose)];
}

std::string_view name_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::timed: return "timed";
    case Kernel::roofline: return "roofline";
    case Kernel::layer_forward: return "layer_forward";
    case Kernel::layer_backward: return "layer_backward";
    case Kernel::loss_forward: return "loss_forward";
    case Kernel::loss_backward: return "loss_backward";
    case Kernel::sgd_step: return "sgd_step";
    case Kernel::adam_step: return "adam_step";
    case Kernel::qadam_step: return "qadam_step";
    case Kernel::optimizer_step: return "optimizer_step";
    case Kernel::fill: return "fill";
    case Kernel::copy: return "copy";
    case Kernel::scale: return "scale";
    case Kernel::add: return "add";
    case Kernel::add_scaled: return "add_scaled";
    case Kernel::average: return "average";
    case Kernel::cast: return "cast";
    case Kernel::swap_outer: return "swap_outer";
    case Kernel::compress: return "compress";
    case Kernel::decompress: return "decompress";
    case Kernel::squared_norm: return "squared_norm";
    case Kernel::clip_by_norm: return "clip_by_norm";
    case Kernel::clip_by_value: return "clip_by_value";
    case Kernel::unscale: return "unscale";
    case Kernel::matrix_product: return "matrix_product";
    case Kernel::orthogonalize: return "orthogonalize";
    case Kernel::adasum: return "adasum";
  }
  return "?";
}

}  // namespace lockstep
