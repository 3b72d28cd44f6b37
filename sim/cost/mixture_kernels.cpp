// Kernels of a mixture of experts: router, gather, experts, scatter.
#include <algorithm>
#include <cmath>

#include "sim/cost/kernel_sum.hpp"

namespace lockstep::sim {

namespace {

/// Rows that the experts of a rank compute, all experts alike: tokens are not known. Of divided
/// experts, those of the busiest rank.
struct ExpertRows {
  int64_t sent = 0;  ///< that the rank's tokens make
  int64_t experts = 1;
  int64_t of_each = 0;
};

ExpertRows rows_of_experts(const LayerPass& pass, const MixtureArguments& mixture) {
  const double load = std::min(1.0, mixture.capacity_factor.value_or(1));
  const double busiest = mixture.ranks > 1 ? mixture.imbalance : 1;
  const double sent = static_cast<double>(rows_of(pass) * mixture.top_k) * load;
  ExpertRows rows;
  rows.sent = std::max<int64_t>(1, std::llround(sent));
  rows.experts = mixture.own_experts();
  rows.of_each = std::max<int64_t>(1, std::llround(sent * busiest * mixture.tensor_ranks /
                                                   static_cast<double>(mixture.own_experts())));
  return rows;
}

/// Grouped experts are one kernel for each weight, experts that are modules one for each expert.
void add_expert_product(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass,
                        const MixtureArguments& mixture, const ExpertRows& rows,
                        MatrixProduct product) {
  product.count = mixture.grouped ? rows.experts : 1;
  for (int64_t kernel = 0; kernel < (mixture.grouped ? 1 : rows.experts); ++kernel) {
    add_product(sum, machine, pass, product, 1);
  }
}

}  // namespace

void add_mixture(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const auto& mixture = std::get<MixtureArguments>(pass.layer->arguments);
  const ExpertRows rows = rows_of_experts(pass, mixture);
  const auto size = static_cast<double>(size_of(pass.dtype));
  const auto width = static_cast<double>(mixture.embed_dim);
  const bool is_gated = mixture.expert == ExpertKind::swiglu;
  const int64_t tokens = rows_of(pass);
  add_product(sum, machine, pass, {tokens, mixture.num_experts, mixture.embed_dim}, 1);
  // Softmax and choice read and write scores in fp32.
  sum.stream(4.0 * 4 * static_cast<double>(tokens * mixture.num_experts));
  // Rows are read and written in the order of experts; in the backward they are added up.
  sum.stream((pass.is_backward ? 3 : 2) * static_cast<double>(rows.sent) * width * size);
  const MatrixProduct in{rows.of_each, mixture.own_hidden_dim(), mixture.embed_dim};
  add_expert_product(sum, machine, pass, mixture, rows, in);
  if (is_gated) {
    add_expert_product(sum, machine, pass, mixture, rows, in);
  }
  // As SwiGLU's; a plain activation reads and writes, and reads two in the backward.
  const double hidden = static_cast<double>(rows.of_each * mixture.own_hidden_dim()) * size;
  const double moved = is_gated ? (pass.is_backward ? 8 : 5) : (pass.is_backward ? 3 : 2);
  const int64_t kernels = mixture.grouped ? 1 : rows.experts;
  for (int64_t kernel = 0; kernel < kernels; ++kernel) {
    sum.element_wise(moved * hidden * static_cast<double>(rows.experts / kernels));
  }
  add_expert_product(sum, machine, pass, mixture, rows,
                     {rows.of_each, mixture.embed_dim, mixture.own_hidden_dim()});
  // What experts give is read, weighted, and added to the output.
  sum.stream(3 * static_cast<double>(rows.sent) * width * size);
}

}  // namespace lockstep::sim
