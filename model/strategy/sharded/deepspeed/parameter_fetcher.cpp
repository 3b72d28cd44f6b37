#include "model/strategy/sharded/deepspeed/parameter_fetcher.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/failure.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

using namespace deepspeed_sites;
using State = ParameterPartitions::State;

namespace {

void add_once(size_t number, std::vector<size_t>& numbers) {
  if (std::ranges::find(numbers, number) == numbers.end()) {
    numbers.push_back(number);
  }
}

}  // namespace

ParameterFetcher::ParameterFetcher(const DeepSpeedOptions& options, ParameterPartitions& partitions,
                                   std::vector<std::vector<size_t>> parameters_of_modules)
    : options_(options),
      partitions_(&partitions),
      parameters_of_(std::move(parameters_of_modules)),
      fetched_for_(partitions.count(), never),
      active_in_(partitions.count()) {
  for (std::vector<size_t>& parameters : parameters_of_) {
    std::sort(parameters.begin(), parameters.end());
  }
  mark_persistent();
}

// mark_persistent_parameters of parameter_offload.py: in order of definition, as many as fit.
void ParameterFetcher::mark_persistent() {
  int64_t marked = 0;
  for (size_t parameter = 0; parameter < partitions_->count(); ++parameter) {
    const int64_t elements = partitions_->elements_of(parameter);
    const bool fits = elements <= options_.model_persistence_threshold - marked;
    persistent_.push_back(fits && elements <= options_.param_persistence_threshold);
    marked += persistent_.back() ? elements : 0;
  }
}

bool ParameterFetcher::is_persistent(size_t parameter) const { return persistent_[parameter]; }

namespace {

// assert_ints_same_as_other_ranks: rank 0's list, which the others compare with their own.
Program compare_lists(Rank& rank, int64_t length) {
  const SiteId site = site_id(check_trace);
  const Slice list = rank.allocate(Purpose::communication, DType::int64, length);
  const Ticket sent = rank.broadcast(world_group, list, 0, {communication_stream, {}, site});
  co_await rank.settle(sent);
  rank.release(list);
}

}  // namespace

Program ParameterFetcher::begin_micro_batch(Rank& rank) {
  if (trace_ != Trace::complete) {
    co_await compare_lists(rank, std::ssize(module_order_));
  }
  if (trace_ == Trace::recording) {
    for (const size_t module : module_order_) {
      const int64_t step = recorded_steps_[module].front();
      recorded_steps_[module].pop_front();
      for (const size_t parameter : parameters_of_[module]) {
        parameter_order_.push_back({parameter, step});
      }
    }
    co_await compare_lists(rank, std::ssize(parameter_order_));
    co_await compare_lists(rank, std::ssize(parameter_order_));
    trace_ = Trace::complete;
  } else if (trace_ == Trace::invalid) {
    trace_ = Trace::recording;
  }
  queue_.assign(parameter_order_.begin(), parameter_order_.end());
  std::ranges::fill(fetched_for_, never);
  recorded_steps_.clear();
  step_ = 0;
}

void ParameterFetcher::forget_trace() {
  trace_ = Trace::invalid;
  module_order_.clear();
  parameter_order_.clear();
  queue_.clear();
  std::ranges::fill(fetched_for_, never);
}

// Another module than the recorded one makes the record useless.
void ParameterFetcher::check_order(size_t module) {
  const auto step = static_cast<size_t>(step_);
  if (trace_ == Trace::complete &&
      (step >= module_order_.size() || module_order_[step] != module)) {
    forget_trace();
  }
  if (trace_ == Trace::recording) {
    module_order_.push_back(module);
    recorded_steps_[module].push_back(step_);
  }
}

void ParameterFetcher::gather(Rank& rank, const std::vector<size_t>& parameters) {
  std::vector<size_t> missing;
  for (const size_t parameter : parameters) {
    if (partitions_->state_of(parameter) == State::away) {
      missing.push_back(parameter);
      available_ += partitions_->elements_of(parameter);
    }
  }
  if (!missing.empty()) {
    partitions_->gather(rank, missing, site_id(deepspeed_sites::fetch));
  }
  for (const size_t parameter : missing) {
    if (is_persistent(parameter)) {
      partitions_->give_buffer(parameter);
    }
  }
}

void ParameterFetcher::fetch(Rank& rank, size_t module) {
  check_order(module);
  const std::vector<size_t>& parameters = parameters_of_[module];
  gather(rank, parameters);
  for (const size_t parameter : parameters) {
    add_once(module, active_in_[parameter]);
    partitions_->wait(rank, parameter, site_id(wait_for_parameters));
  }
  if (trace_ == Trace::complete) {
    prefetch(rank, parameters);
  }
  ++step_;
}

// The uses of the module itself leave the queue, unless an earlier prefetch has taken them; then
// the next ones are gathered, all in one call, up to the bucket's size and to what may be live.
void ParameterFetcher::prefetch(Rank& rank, const std::vector<size_t>& parameters) {
  const auto expected = static_cast<size_t>(std::ranges::count_if(
      parameters, [this](size_t parameter) { return fetched_for_[parameter] < step_; }));
  std::vector<size_t> discarded;
  while (!queue_.empty() && discarded.size() < expected) {
    const Use use = queue_.front();
    queue_.pop_front();
    fetched_for_[use.parameter] = use.last_step;
    add_once(use.parameter, discarded);
  }
  const int64_t most =
      std::min(options_.max_live_parameters - available_, options_.prefetch_bucket_size);
  std::vector<size_t> chosen;
  int64_t elements = 0;
  while (options_.prefetch_bucket_size > 0 && !queue_.empty() && elements < most) {
    const Use use = queue_.front();
    if (partitions_->is_away_on_drive(use.parameter)) {
      break;  // it has to be read first, and nothing behind it may come before it
    }
    queue_.pop_front();
    fetched_for_[use.parameter] = std::max(fetched_for_[use.parameter], use.last_step);
    const bool is_chosen = std::ranges::find(chosen, use.parameter) != chosen.end();
    if (!is_chosen && partitions_->state_of(use.parameter) == State::away) {
      chosen.push_back(use.parameter);
      elements += partitions_->elements_of(use.parameter);
    }
  }
  if (!chosen.empty()) {
    gather(rank, chosen);
  }
  if (options_.prefetch_bucket_size > 0 && partitions_->uses_drive()) {
    read_ahead(rank);
  }
}

// __prefetch_nvme_param_partitions: parts of what comes behind the parameters that are being
// gathered, up to twice their size, and at least one.
void ParameterFetcher::read_ahead(Rank& rank) {
  int64_t under_way = 0;
  for (size_t parameter = 0; parameter < partitions_->count(); ++parameter) {
    under_way += partitions_->state_of(parameter) == State::under_way
                     ? partitions_->elements_of(parameter)
                     : 0;
  }
  std::vector<size_t> chosen;
  int64_t considered = 0;
  for (const Use& use : queue_) {
    if (considered > 2 * under_way || chosen.size() >= partitions_->swapper().free_buffers()) {
      break;
    }
    if (partitions_->is_away_on_drive(use.parameter)) {
      if (std::ranges::find(chosen, use.parameter) != chosen.end()) {
        throw ProgramException(
            site_id(read_parameters),
            fmt::format("AssertionError: param {} already assigned swap buffer id (DeepSpeed reads "
                        "ahead twice what two of the next modules use: set "
                        "stage3_prefetch_bucket_size to 0, or keep all parameters on the drive or "
                        "none, by max_in_cpu)",
                        use.parameter));
      }
      chosen.push_back(use.parameter);
    }
    considered += partitions_->elements_of(use.parameter);
  }
  partitions_->swapper().bring(rank, chosen, site_id(read_parameters));
}

// Neither what stays, nor what was gathered for a later module, nor what is used again soon.
std::vector<size_t> ParameterFetcher::decide_what_may_be_freed(size_t module) const {
  std::vector<size_t> free = parameters_of_[module];
  std::erase_if(free, [this](size_t parameter) {
    return is_persistent(parameter) || fetched_for_[parameter] > step_;
  });
  int64_t traversed = 0;
  for (auto step = static_cast<size_t>(step_);
       step < module_order_.size() && traversed < options_.max_reuse_distance && !free.empty();
       ++step) {
    for (const size_t parameter : parameters_of_[module_order_[step]]) {
      std::erase(free, parameter);
      traversed += partitions_->elements_of(parameter);
    }
  }
  return free;
}

const std::vector<size_t>& ParameterFetcher::may_be_freed(size_t module) {
  const std::pair<size_t, int64_t> key(module, step_);
  const auto known = decided_.find(key);
  return known != decided_.end()
             ? known->second
             : decided_.emplace(key, decide_what_may_be_freed(module)).first->second;
}

void ParameterFetcher::release_all(Rank& rank) {
  for (size_t parameter = 0; parameter < partitions_->count(); ++parameter) {
    partitions_->wait(rank, parameter, site_id(wait_for_parameters));
    partitions_->free(rank, parameter);
  }
  std::ranges::fill(active_in_, std::vector<size_t>());
  available_ = 0;
}

void ParameterFetcher::gather_persistent(Rank& rank) {
  for (const size_t parameter : partitions_->trainable()) {
    if (is_persistent(parameter)) {
      gather(rank, {parameter});
      partitions_->wait(rank, parameter, site_id(wait_for_parameters));
    }
  }
}

void ParameterFetcher::release(Rank& rank, size_t module) {
  const std::vector<size_t>* free = trace_ == Trace::complete ? &may_be_freed(module) : nullptr;
  for (const size_t parameter : parameters_of_[module]) {
    std::erase(active_in_[parameter], module);
    const bool is_free = free == nullptr || std::ranges::find(*free, parameter) != free->end();
    if (is_free && active_in_[parameter].empty() &&
        partitions_->state_of(parameter) == State::here) {
      partitions_->free(rank, parameter);
      available_ -= partitions_->elements_of(parameter);
    }
  }
}

}  // namespace lockstep
