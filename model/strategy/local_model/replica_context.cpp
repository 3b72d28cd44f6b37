// A replica whose samples are parts: attention, where each position meets those of other ranks.
#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/context_attention.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

void Replica::share_positions(const TensorRanks& ranks) {
  ensure(!is_allocated_, "parts are chosen before they get memory");
  context_ranks_ = ranks;
}

/// Of every sample those positions that this rank has: `part` of it.
Values Replica::own_positions(const Values& samples, const Shape& part) const {
  if (context_ranks_.ranks == 1) {
    return samples;
  }
  const int64_t count = part.front();
  const RankPositions positions{count, context_ranks_.ranks, context_ranks_.index};
  const int64_t all = count * context_ranks_.ranks;
  const int64_t width = samples.size() / (now_.samples * all);
  Values own(samples.dtype(), samples.size() / context_ranks_.ranks);
  for (int64_t row = 0; row < now_.samples * count; ++row) {
    const int64_t from = row / count * all + positions.in_sample(row % count);
    own.assign(row * width, samples.slice(from * width, width));
  }
  return own;
}

void Replica::forward_of_context(Rank& rank, const LayerRun& run, const Turn& turn,
                                 const Slice& output) {
  const ContextPlace place{
      .plan = plan_,
      .ranks = context_ranks_,
      .layer = run.layer,
      .samples = now_.samples,
      .dtype = plan_->numerics ? run.input.dtype : plan_->activation_dtype,
      .compute = compute(),
      .site = site_id(turn.again ? replica_sites::recompute : replica_sites::layer_forward),
      .memory = [&](int64_t elements, DType dtype) { return transient(rank, elements, dtype); }};
  const ContextRun left = ContextAttention(rank, place).forward(run.input, output);
  std::erase_if(now_.context_runs,
                [&](const ContextRun& other) { return other.layer == run.layer; });
  now_.context_runs.push_back(left);
}

Ticket Replica::backward_of_context(Rank& rank, const LayerRun& run) {
  const auto left = std::ranges::find(now_.context_runs, run.layer, &ContextRun::layer);
  ensure(left != now_.context_runs.end(), "a forward comes before its backward");
  const ContextPlace place{
      .plan = plan_,
      .ranks = context_ranks_,
      .layer = run.layer,
      .samples = now_.samples,
      .dtype = plan_->numerics ? run.input.dtype : plan_->activation_dtype,
      .compute = compute(),
      .site = site_id(replica_sites::layer_backward),
      .memory = [&](int64_t elements, DType dtype) { return transient(rank, elements, dtype); }};
  const Slice gradient = now_.gradient;
  if (plan_->numerics) {
    now_.gradient = transient(rank, run.input.elements, run.input.dtype);
  }
  return ContextAttention(rank, place).backward(*left, run.output, gradient, now_.gradient);
}

}  // namespace lockstep
