#include "model/strategy/local_model/batch_arrival.hpp"

#include "model/network/attention_part.hpp"
#include "model/strategy/local_model/batch_values.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

namespace {

Values constant(const Values& like, double value) {
  Values values(like.dtype(), like.size());
  for (int64_t i = 0; i < values.size(); ++i) {
    values.set(i, value);
  }
  return values;
}

}  // namespace

// Of every sample those positions that this rank has: `part` of it.
Values BatchArrival::own_positions(const Values& samples, const Shape& part) const {
  const TensorRanks& others = state_.division().positions;
  if (others.ranks == 1) {
    return samples;
  }
  const int64_t count = part.front();
  const RankPositions positions{count, others.ranks, others.index};
  const int64_t all = count * others.ranks;
  const int64_t width = samples.size() / (now_.samples * all);
  Values own(samples.dtype(), samples.size() / others.ranks);
  for (int64_t row = 0; row < now_.samples * count; ++row) {
    const int64_t from = row / count * all + positions.in_sample(row % count);
    own.assign(row * width, samples.slice(from * width, width));
  }
  return own;
}

Slice BatchArrival::input_on_host(Rank& rank, const Batch& batch,
                                  const StepOptions& options) const {
  const Network& net = network();
  const size_t first = options.modules.empty() ? 0 : options.modules.front();
  const DType given = net.input_dtype_of(first);
  const DType dtype = is_floating(given) ? plan().parameter_dtype : given;
  const int64_t elements = now_.samples * elements_of(net.input_of(first));
  const Slice host = rank.allocate(Purpose::input, dtype, elements, host_device);
  if (state_.writes_values()) {
    rank.write(host, own_positions(batch_inputs(plan(), batch, first), net.input_of(first)));
  }
  return host;
}

Slice BatchArrival::target_on_host(Rank& rank, const Batch& batch,
                                   const StepOptions& options) const {
  const Layer& loss = network().loss_of(static_cast<int32_t>(now_.last_module));
  const bool classes = has_class_targets(loss.kind);
  const int64_t targets = target_elements(loss);
  const DType dtype = classes ? DType::int64 : plan().parameter_dtype;
  const Slice host = rank.allocate(Purpose::input, dtype, now_.samples * targets, host_device);
  if (state_.writes_values()) {
    const Values goal = batch_targets(plan(), batch, now_.last_module);
    const Values own = own_positions(goal, loss.input);
    rank.write(host, options.target ? constant(own, *options.target) : own);
  }
  return host;
}

void BatchArrival::copy_to_device(Rank& rank, const Slice& host, const Slice& there,
                                  After after) const {
  rank.copy(host, there, {compute(), after, site_id(replica_sites::bring_batch)});
}

void BatchArrival::bring(Rank& rank, const Batch& batch, const StepOptions& options, After after) {
  const Slice input = input_on_host(rank, batch, options);
  const Slice target = target_on_host(rank, batch, options);
  now_.input = rank.allocate(Purpose::input, input.dtype, input.elements, device());
  now_.target = rank.allocate(Purpose::input, target.dtype, target.elements, device());
  copy_to_device(rank, input, now_.input, after);
  copy_to_device(rank, target, now_.target, after);
  rank.release(input);
  rank.release(target);
  now_.transient = {now_.input, now_.target};
  now_.current = now_.input;
}

Slice BatchArrival::bring_alone(Rank& rank, const Slice& host) {
  const Slice there = rank.allocate(Purpose::input, host.dtype, host.elements, device());
  copy_to_device(rank, host, there, {});
  rank.release(host);
  now_.transient.push_back(there);
  return there;
}

void BatchArrival::bring_input(Rank& rank, const Batch& batch, const StepOptions& options) {
  now_.input = bring_alone(rank, input_on_host(rank, batch, options));
  now_.current = now_.input;
}

void BatchArrival::bring_target(Rank& rank, const Batch& batch, const StepOptions& options) {
  now_.target = bring_alone(rank, target_on_host(rank, batch, options));
}

}  // namespace lockstep
