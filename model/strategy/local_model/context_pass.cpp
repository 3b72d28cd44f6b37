#include "model/strategy/local_model/context_pass.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

ContextPlace ContextPass::place(Rank& rank, const LayerRun& run, std::string_view site) const {
  return {.plan = &plan(),
          .ranks = state_.division().positions,
          .layer = run.layer,
          .samples = now_.samples,
          .dtype = plan().numerics ? run.input.dtype : plan().activation_dtype,
          .compute = compute(),
          .site = site_id(site),
          .memory = [this, &rank](int64_t elements, DType dtype) {
            return transient(rank, elements, dtype);
          }};
}

void ContextPass::forward(Rank& rank, const LayerRun& run, const LayerTurn& turn,
                          const Slice& output) {
  const ContextPlace here =
      place(rank, run, turn.again ? replica_sites::recompute : replica_sites::layer_forward);
  const ContextRun left = ContextAttention(rank, here).forward(run.input, output);
  std::erase_if(now_.context_runs,
                [&](const ContextRun& other) { return other.layer == run.layer; });
  now_.context_runs.push_back(left);
}

Ticket ContextPass::backward(Rank& rank, const LayerRun& run) {
  const auto left = std::ranges::find(now_.context_runs, run.layer, &ContextRun::layer);
  ensure(left != now_.context_runs.end(), "a forward comes before its backward");
  const ContextPlace here = place(rank, run, replica_sites::layer_backward);
  const Slice gradient = now_.gradient;
  if (plan().numerics) {
    now_.gradient = transient(rank, run.input.elements, run.input.dtype);
  }
  return ContextAttention(rank, here).backward(*left, run.output, gradient, now_.gradient);
}

}  // namespace lockstep
