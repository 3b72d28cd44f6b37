#include "model/strategy/local_model/context_attention.hpp"

#include <utility>

#include "model/strategy/local_model/context_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

ContextAttention::ContextAttention(Rank& rank, const ContextPlace& place)
    : rank_(rank),
      place_(place),
      widths_(core_widths(layer())),
      rows_(place.samples * layer().input.front()),
      query_(rows_ * widths_.query()),
      key_(rows_ * widths_.key()) {}

ContextAttention::~ContextAttention() {
  for (const Slice& slice : held_) {
    rank_.release(slice);
  }
}

int64_t ContextAttention::groups() const {
  return layer().context->exchange == ContextExchange::all_to_all ? ranks() : 1;
}

ContextRun ContextAttention::forward(const Slice& input, const Slice& output) {
  switch (layer().context->exchange) {
    case ContextExchange::all_gather: return forward_by_gather(input, output);
    case ContextExchange::all_to_all: return forward_by_heads(input, output);
    case ContextExchange::ring: break;
  }
  return forward_by_ring(input, output);
}

Ticket ContextAttention::backward(const ContextRun& run, const Slice& output, const Slice& gradient,
                                  const Slice& input_gradient) {
  switch (layer().context->exchange) {
    case ContextExchange::all_gather:
      return backward_by_gather(run, output, gradient, input_gradient);
    case ContextExchange::all_to_all: return backward_by_heads(run, gradient, input_gradient);
    case ContextExchange::ring: break;
  }
  return backward_by_ring(run, output, gradient, input_gradient);
}

// Parts

Slice ContextAttention::travelling(int64_t elements) {
  if (has_values()) {
    return place_.memory(elements, place_.dtype);
  }
  held_.push_back(rank_.allocate(Purpose::communication, place_.dtype, elements));
  return held_.back();
}

Slice ContextAttention::local(int64_t elements) {
  return has_values() ? place_.memory(elements, place_.dtype) : Slice{};
}

Slice ContextAttention::log_sums() {
  const DType dtype = place_.dtype == DType::fp64 ? DType::fp64 : DType::fp32;
  return has_values() ? place_.memory(rows_ * widths_.heads, dtype) : Slice{};
}

Ticket ContextAttention::ready(std::string_view site) {
  return rank_.event({place_.compute, {}, site_id(site)});
}

void ContextAttention::wait_for(Ticket done, std::string_view site) {
  rank_.event({place_.compute, {done}, site_id(site)});
}

Ticket ContextAttention::compute(bool is_forward, AttentionPart part, const Meeting& meeting,
                                 const std::vector<Slice>& reads, const std::vector<Slice>& writes,
                                 Bytes moved) {
  std::vector<double> scalars{static_cast<double>(place_.samples)};
  if (is_forward) {
    scalars.insert(scalars.end(), {1.0, 0.0});
  }
  for (const int64_t number :
       {static_cast<int64_t>(part), groups(), int64_t{meeting.first_query_rank},
        int64_t{meeting.query_ranks}, int64_t{meeting.first_key_rank}, int64_t{meeting.key_ranks},
        int64_t{meeting.begins_query}, int64_t{meeting.begins_key}}) {
    scalars.push_back(static_cast<double>(number));
  }
  KernelCall call;
  call.kernel = is_forward ? Kernel::layer_forward : Kernel::layer_backward;
  call.layer = static_cast<int32_t>(place_.layer);
  call.computes_in = place_.dtype;
  call.memory_traffic = moved;
  call.scalars = scalars;
  if (has_values()) {
    call.reads = reads;
    call.writes = writes;
  }
  if (part == AttentionPart::attend) {
    const Pass pass = is_forward ? Pass::forward : Pass::input_gradient;
    call.work = flops_of(layer(), pass, place_.samples).count() / meeting.part_of_work;
    call.memory_traffic =
        moved_bytes(layer(), pass, place_.samples, place_.dtype) / meeting.part_of_work;
  }
  return rank_.compute(call, {place_.compute, {}, place_.site});
}

Ticket ContextAttention::attend(const Meeting& meeting, const std::vector<Slice>& reads,
                                const std::vector<Slice>& writes, bool is_forward) {
  return compute(is_forward, AttentionPart::attend, meeting, reads, writes);
}

// Read and written once; by heads, stretches of positions are put in order on one side of the
// exchange, too.
Ticket ContextAttention::rearrange(bool is_forward, AttentionPart part,
                                   const std::vector<Slice>& reads,
                                   const std::vector<Slice>& writes, int64_t elements) {
  const int64_t times = groups() > 1 ? 4 : 2;
  return compute(is_forward, part, {}, reads, writes,
                 Bytes(size_of(place_.dtype)) * (times * elements));
}

// AttnFuncWithCPAndKVAllGather

Slice ContextAttention::gathered(const Slice& part) {
  const SiteId site = site_id(context_sites::gather);
  const Slice whole = travelling(part.elements * ranks());
  const Ticket made = ready(context_sites::gather);
  wait_for(rank_.all_gather(place_.ranks.group, part, whole, {place_.ranks.on, {made}, site}),
           context_sites::gather);
  return whole;
}

Slice ContextAttention::scattered(const Slice& whole) {
  const SiteId site = site_id(context_sites::scatter);
  const Slice part = travelling(whole.elements / ranks());
  const Ticket made = ready(context_sites::scatter);
  wait_for(rank_.reduce_scatter(place_.ranks.group, whole, part, Reduction::sum, {},
                                {place_.ranks.on, {made}, site}),
           context_sites::scatter);
  return part;
}

ContextRun ContextAttention::forward_by_gather(const Slice& input, const Slice& output) {
  ContextRun run{place_.layer,     local(query_), travelling(key_),
                 travelling(key_), output,        log_sums()};
  rearrange(true, AttentionPart::take_apart, {input}, {run.query, run.key, run.value},
            query_ + 2 * key_);
  const Slice keys = gathered(run.key);
  const Slice values = gathered(run.value);
  attend({.first_query_rank = own(), .key_ranks = ranks()}, {run.query, keys, values},
         {output, run.log_sums}, true);
  return run;
}

// Keys and values of the others are gathered once more.
Ticket ContextAttention::backward_by_gather(const ContextRun& run, const Slice& output,
                                            const Slice& gradient, const Slice& input_gradient) {
  const Slice keys = gathered(has_values() ? run.key : travelling(key_));
  const Slice values = gathered(has_values() ? run.value : travelling(key_));
  const Slice query_gradient = local(query_);
  const Slice key_gradients = travelling(key_ * ranks());
  const Slice value_gradients = travelling(key_ * ranks());
  attend({.first_query_rank = own(), .key_ranks = ranks()},
         {run.query, keys, values, output, gradient, run.log_sums},
         {query_gradient, key_gradients, value_gradients}, false);
  const Slice key_gradient = scattered(key_gradients);
  const Slice value_gradient = scattered(value_gradients);
  return rearrange(false, AttentionPart::put_together,
                   {query_gradient, key_gradient, value_gradient}, {input_gradient},
                   query_ + 2 * key_);
}

// AttnFuncWithCPAndQKVOA2A

Slice ContextAttention::exchanged(const Slice& from, std::string_view site) {
  const Slice to = travelling(from.elements);
  const Ticket made = ready(site);
  wait_for(
      rank_.all_to_all(place_.ranks.group, from, to, {}, {place_.ranks.on, {made}, site_id(site)}),
      site);
  return to;
}

ContextRun ContextAttention::forward_by_heads(const Slice& input, const Slice& output) {
  const Slice query = travelling(query_);
  const Slice key = travelling(key_);
  const Slice value = travelling(key_);
  rearrange(true, AttentionPart::take_apart, {input}, {query, key, value}, query_ + 2 * key_);
  ContextRun run;
  run.layer = place_.layer;
  run.query = exchanged(query, context_sites::to_heads);
  run.key = exchanged(key, context_sites::to_heads);
  run.value = exchanged(value, context_sites::to_heads);
  run.output = travelling(query_);
  run.log_sums = log_sums();
  attend({.query_ranks = ranks(), .key_ranks = ranks()}, {run.query, run.key, run.value},
         {run.output, run.log_sums}, true);
  const Slice back = exchanged(run.output, context_sites::to_positions);
  rearrange(true, AttentionPart::put_together, {back}, {output}, query_);
  return run;
}

Ticket ContextAttention::backward_by_heads(const ContextRun& run, const Slice& gradient,
                                           const Slice& input_gradient) {
  const Slice apart = travelling(query_);
  rearrange(false, AttentionPart::take_apart, {gradient}, {apart}, query_);
  const Slice sum_gradient = exchanged(apart, context_sites::to_heads);
  const Slice query = travelling(query_);
  const Slice key = travelling(key_);
  const Slice value = travelling(key_);
  attend({.query_ranks = ranks(), .key_ranks = ranks()},
         {run.query, run.key, run.value, run.output, sum_gradient, run.log_sums},
         {query, key, value}, false);
  const Slice query_back = exchanged(query, context_sites::to_positions);
  const Slice key_back = exchanged(key, context_sites::to_positions);
  const Slice value_back = exchanged(value, context_sites::to_positions);
  return rearrange(false, AttentionPart::put_together, {query_back, key_back, value_back},
                   {input_gradient}, query_ + 2 * key_);
}

// AttnFuncWithCPAndKVP2P

/// `step`: 1 to the next rank, -1 to the one before.
Ticket ContextAttention::pass_on(const Slice& sent, const Slice& received, int32_t step,
                                 Ticket after) {
  const SiteId site = site_id(step > 0 ? context_sites::ring : context_sites::ring_back);
  GroupedCall calls(rank_, {place_.ranks.on, {after}, site});
  calls.send(place_.ranks.group, sent, place_.ranks.rank_of(neighbour(step)));
  calls.receive(place_.ranks.group, received, place_.ranks.rank_of(neighbour(-step)));
  return calls.submit();
}

/// The results of a block are added to those of the blocks before: read both, write one. Keys of
/// later stretches meet the later half of the queries alone.
void ContextAttention::merge(int32_t key_rank) {
  const int64_t rows = widths_.causal && key_rank > own() ? query_ / 2 : query_;
  KernelCall call;
  call.kernel = Kernel::roofline;
  call.memory_traffic = Bytes(size_of(place_.dtype)) * (3 * rows);
  rank_.compute(call, {place_.compute, {}, site_id(context_sites::merge)});
}

// The keys and values that a block needs travel while the block before is computed.
ContextRun ContextAttention::forward_by_ring(const Slice& input, const Slice& output) {
  ContextRun run{place_.layer, local(query_), {}, {}, output, log_sums()};
  std::vector<Slice> pairs;
  for (int32_t i = 0; i < ranks(); ++i) {
    pairs.push_back(travelling(2 * key_));
  }
  rearrange(true, AttentionPart::take_apart, {input},
            {run.query, pairs[0].part(0, key_), pairs[0].part(key_, key_)}, query_ + 2 * key_);
  Ticket arrived = ready(context_sites::ring);
  for (int32_t i = 0; i < ranks(); ++i) {
    const Slice& pair = pairs[static_cast<size_t>(i)];
    const Ticket here = arrived;
    if (i + 1 < ranks()) {
      arrived = pass_on(pair, pairs[static_cast<size_t>(i) + 1], 1, here);
    }
    wait_for(here, context_sites::ring);
    run.key = pair.part(0, key_);
    run.value = pair.part(key_, key_);
    const int32_t from = neighbour(-i);
    attend({.first_query_rank = own(),
            .first_key_rank = from,
            .begins_query = i == 0,
            .part_of_work = ranks()},
           {run.query, run.key, run.value}, {output, run.log_sums}, true);
    if (i > 0) {
      merge(from);
    }
  }
  return run;
}

// The ring turns the other way, from the block that came last to this rank's own. Gradients of keys
// and values follow them, one step behind.
Ticket ContextAttention::backward_by_ring(const ContextRun& run, const Slice& output,
                                          const Slice& gradient, const Slice& input_gradient) {
  const int64_t pair = 2 * key_;
  const Slice buffers[] = {travelling(2 * pair), travelling(2 * pair)};
  const Slice query_gradient = local(query_);
  const Slice block = travelling(pair);
  const SiteId site = site_id(context_sites::merge);
  elementwise(rank_, Kernel::copy,
              has_values() ? std::vector{run.key, run.value} : std::vector{block},
              has_values() ? std::vector{buffers[0].part(0, key_), buffers[0].part(key_, key_)}
                           : std::vector{buffers[0].part(0, pair)},
              0, {place_.compute, {}, site});
  Ticket arrived{};
  for (int32_t i = 0; i < ranks(); ++i) {
    const bool is_first = i == 0;
    const bool is_last = i + 1 == ranks();
    const Slice& here = buffers[i % 2];
    const Slice& next = buffers[(i + 1) % 2];
    const int64_t begin = is_last ? pair : 0;
    const int64_t length = is_first || is_last ? pair : 2 * pair;
    wait_for(arrived, context_sites::ring_back);
    const Ticket made = ready(context_sites::ring_back);
    arrived = pass_on(here.part(begin, length), next.part(begin, length), -1, made);
    const int32_t from = neighbour(i + 1);
    attend({.first_query_rank = own(),
            .first_key_rank = from,
            .begins_query = is_first,
            .part_of_work = ranks()},
           {run.query, here.part(0, key_), here.part(key_, key_), output, gradient, run.log_sums},
           {query_gradient, block.part(0, key_), block.part(key_, key_)}, false);
    if (!is_first) {
      merge(from);
    }
    wait_for(arrived, context_sites::ring_back);
    elementwise(rank_, is_first ? Kernel::copy : Kernel::add, {block}, {next.part(pair, pair)}, 0,
                {place_.compute, {}, site});
  }
  const Slice& last = buffers[ranks() % 2];
  return rearrange(false, AttentionPart::put_together,
                   {query_gradient, last.part(pair, key_), last.part(pair + key_, key_)},
                   {input_gradient}, query_ + 2 * key_);
}

}  // namespace lockstep
