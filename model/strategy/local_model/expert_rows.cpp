#include "model/strategy/local_model/expert_rows.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "model/network/mixture.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

Ticket ExpertRows::send_numbers(Rank& rank, const ExpertRun& run) {
  const SiteId site = site_id(tensor_sites::announce);
  const Ticket ready = rank.event({compute(), {}, site});
  const TensorRanks& counting = ranks().counting;
  if (counting.ranks > 0) {
    return rank.all_gather(counting.group, run.choices, run.counted, {counting.on, {ready}, site});
  }
  return rank.all_to_all(ranks().parallel.group, run.choices, run.arriving, {},
                         {ranks().parallel.on, {ready}, site});
}

namespace {

/// Elements for each rank, of the numbers of rows for the experts of each.
void add_splits(const MixtureArguments& mixture, const Values& numbers, ExpertRun& run) {
  const int64_t own = mixture.own_experts();
  for (int32_t other = 0; other < mixture.ranks; ++other) {
    int64_t rows = 0;
    for (int64_t expert = 0; expert < own; ++expert) {
      rows += numbers.integer(other * own + expert);
    }
    run.splits.push_back(rows * mixture.embed_dim);
  }
}

/// The choices of all ranks: those with the same experts are neighbours.
struct CountedChoices {
  const MixtureArguments& mixture;
  const Values& numbers;

  /// Of one rank, for the experts of one.
  std::vector<int64_t> of(int32_t source, int32_t tensor, int32_t experts_of) const {
    const int64_t own = mixture.own_experts();
    const int64_t rank = int64_t{source} * mixture.tensor_ranks + tensor;
    std::vector<int64_t> found;
    for (int64_t expert = experts_of * own; expert < (experts_of + 1) * own; ++expert) {
      found.push_back(numbers.integer(rank * mixture.num_experts + expert));
    }
    return found;
  }
  int64_t elements(int32_t source, int32_t tensor, int32_t experts_of) const {
    const std::vector<int64_t> found = of(source, tensor, experts_of);
    return std::accumulate(found.begin(), found.end(), int64_t{0}) * mixture.embed_dim;
  }
};

/// Own experts get the rows of one of the ranks that have them after the other. Returns their
/// numbers by source and expert.
Values add_gathered(const CountedChoices& choices, const ExpertRanks& ranks, ExpertRun& run) {
  const int32_t here = ranks.parallel.index;
  const int32_t tensor = ranks.tensor.index;
  for (int32_t other = 0; other < choices.mixture.ranks; ++other) {
    run.splits.push_back(choices.elements(here, tensor, other));
  }
  for (int32_t other = 0; other < choices.mixture.ranks; ++other) {
    run.splits.push_back(choices.elements(other, tensor, here));
  }
  Values arriving(DType::int64, run.arriving.elements);
  int64_t next = 0;
  for (int32_t same = 0; same < choices.mixture.tensor_ranks; ++same) {
    run.gathered.push_back(0);
    for (int32_t other = 0; other < choices.mixture.ranks; ++other) {
      run.gathered.back() += choices.elements(other, same, here);
      for (const int64_t number : choices.of(other, same, here)) {
        arriving.set_integer(next++, number);
      }
    }
  }
  return arriving;
}

}  // namespace

void ExpertRows::read_numbers(Rank& rank, ExpertRun& run, const LayerTurn& turn,
                              RoutedTokens& routing) {
  const MixtureArguments& mixture = mixture_arguments(network(), run.layer);
  const Values choices = rank.read(run.choices);
  if (choices.empty()) {
    return;
  }
  if (turn.training) {
    routing.note_load(now_, run.layer, choices);
  }
  if (ranks().counting.ranks == 0) {
    add_splits(mixture, choices, run);
    add_splits(mixture, rank.read(run.arriving), run);
  } else {
    const Values counted = rank.read(run.counted);
    rank.write(run.arriving, add_gathered({mixture, counted}, ranks(), run));
  }
}

void ExpertRows::learn_sizes(Rank& rank, ExpertRun& run, const LayerTurn& turn,
                             RoutedTokens& routing) {
  if (std::exchange(run.is_sized, true)) {
    return;
  }
  const MixtureArguments& mixture = mixture_arguments(network(), run.layer);
  const Layer& mixed = network().layers[run.layer];
  const DType dtype = plan().numerics ? run.sent.dtype : plan().activation_dtype;
  const int64_t sent = now_.samples * elements_of(mixed.input) * mixture.top_k;
  if (plan().numerics) {
    read_numbers(rank, run, turn, routing);
  }
  const int64_t arrived = run.splits.empty() ? sent
                                             : std::accumulate(run.splits.begin() + mixture.ranks,
                                                               run.splits.end(), int64_t{0});
  const int64_t received =
      run.gathered.empty() ? arrived * mixture.tensor_ranks
                           : std::accumulate(run.gathered.begin(), run.gathered.end(), int64_t{0});
  run.sent = Slice{run.sent.buffer, dtype, 0, sent};
  run.arrived = Slice{no_buffer, dtype, 0, arrived};
  run.received = Slice{no_buffer, dtype, 0, received};
  run.returned = Slice{no_buffer, dtype, 0, sent};
}

Slice ExpertRows::memory_of(Rank& rank, const Slice& like) {
  const int64_t elements = std::max<int64_t>(1, like.elements);
  const Slice memory = plan().numerics
                           ? transient(rank, elements, like.dtype)
                           : rank.allocate(Purpose::communication, like.dtype, elements, device());
  return memory.part(0, like.elements);
}

RowsOnTheWay ExpertRows::way_of(Rank& rank, const Slice& at_home, const ExpertRun& run) {
  RowsOnTheWay rows{at_home, at_home, {}};
  if (ranks().parallel.ranks > 1) {
    rows.arrived = memory_of(rank, run.arrived);
  }
  rows.at_experts = ranks().tensor.ranks > 1 ? memory_of(rank, run.received) : rows.arrived;
  return rows;
}

void ExpertRows::free_way(Rank& rank, const RowsOnTheWay& rows) {
  if (plan().numerics) {
    return;
  }
  if (rows.at_experts.buffer != rows.arrived.buffer) {
    rank.release(rows.at_experts);
  }
  if (rows.arrived.buffer != rows.at_home.buffer) {
    rank.release(rows.arrived);
  }
  rank.release(rows.at_home);
}

Ticket ExpertRows::send(Rank& rank, const ExpertRun& run, const Slice& from, const Slice& to,
                        bool to_experts, std::string_view site) {
  std::vector<int64_t> splits = run.splits;
  if (!to_experts) {
    std::ranges::rotate(splits, splits.begin() + std::ssize(splits) / 2);
  }
  const Ticket ready = rank.event({compute(), {}, site_id(site)});
  const Ticket done = rank.all_to_all(ranks().parallel.group, from, to, splits,
                                      {ranks().parallel.on, {ready}, site_id(site)});
  return rank.event({compute(), {done}, site_id(site)});
}

// Rows of different numbers are gathered by a broadcast of each rank, as ProcessGroupNCCL does.
Ticket ExpertRows::bring(Rank& rank, const ExpertRun& run, const RowsOnTheWay& rows,
                         std::string_view site_name) {
  const SiteId site = site_id(site_name);
  const TensorRanks& same = ranks().tensor;
  Ticket done = ranks().parallel.ranks > 1
                    ? send(rank, run, rows.at_home, rows.arrived, true, site_name)
                    : rank.event({compute(), {}, site});
  if (same.ranks == 1) {
    return done;
  }
  if (std::ranges::adjacent_find(run.gathered, std::not_equal_to<>()) == run.gathered.end()) {
    done = rank.all_gather(same.group, rows.arrived, rows.at_experts, {same.on, {done}, site});
    return rank.event({compute(), {done}, site});
  }
  int64_t begin = 0;
  for (int32_t other = 0; other < same.ranks; ++other) {
    const int64_t elements = run.gathered[static_cast<size_t>(other)];
    const Slice part = rows.at_experts.part(std::exchange(begin, begin + elements), elements);
    if (elements > 0 && other == same.index) {
      done = elementwise(rank, Kernel::copy, {rows.arrived}, {part}, 0, {compute(), {}, site});
    }
    if (elements > 0) {
      done = rank.broadcast(same.group, part, same.rank_of(other), {same.on, {done}, site});
    }
  }
  return rank.event({compute(), {done}, site});
}

Ticket ExpertRows::return_home(Rank& rank, const ExpertRun& run, const RowsOnTheWay& rows,
                               std::string_view site_name) {
  const SiteId site = site_id(site_name);
  const TensorRanks& same = ranks().tensor;
  Ticket done{};
  if (same.ranks > 1) {
    done = rank.event({compute(), {}, site});
    done = rank.reduce_scatter(same.group, rows.at_experts, rows.arrived, Reduction::sum,
                               run.gathered, {same.on, {done}, site});
    done = rank.event({compute(), {done}, site});
  }
  return ranks().parallel.ranks > 1 ? send(rank, run, rows.arrived, rows.at_home, false, site_name)
                                    : done;
}

}  // namespace lockstep
