// What the background threads agree on in a cycle (horovod/common/controller.cc).
#include <algorithm>

#include "model/strategy/exchange/negotiation/negotiation_sites.hpp"
#include "model/strategy/exchange/negotiation/negotiator.hpp"

namespace lockstep {

using namespace negotiation_sites;

namespace {

/// Flags before those of the cached tensors.
enum Status : int64_t {
  nothing_uncached,
  nothing_new,
  nobody_closes,
  joined,
  nothing_outdated,
  status_count
};

}  // namespace

Slice Negotiator::control_numbers(Rank& rank, DType dtype, int64_t count) {
  return rank.allocate(Purpose::metric, dtype, count);
}

std::vector<int64_t> Negotiator::uncached() const {
  std::vector<int64_t> numbers;
  for (const int64_t number : pending_) {
    if (!told_.contains(number) && !cache_.position_of(queue_.at(number).request)) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

// One flag for each cached tensor, as Horovod has one bit; the smallest of all ranks counts.
Task<Negotiator::Agreement> Negotiator::agree(Rank& rank) {
  const auto count = static_cast<int64_t>(cache_.positions());
  if (bits_.elements != status_count + count) {
    if (bits_.buffer != no_buffer) {
      rank.release(bits_);
    }
    bits_ = control_numbers(rank, DType::uint8, status_count + count);
  }
  Values own(DType::uint8, status_count + count);
  own.set_integer(nothing_uncached, uncached().empty() ? 1 : 0);
  own.set_integer(nothing_new, took_something_ ? 0 : 1);
  own.set_integer(nobody_closes, closes_ ? 0 : 1);
  own.set_integer(nothing_outdated, outdated().empty() ? 1 : 0);
  own.set_integer(joined, has_joined_ ? 1 : 0);
  for (int64_t position = 0; has_joined_ && position < count; ++position) {
    const TensorRequest& cached = cache_.at(static_cast<size_t>(position)).request;
    own.set_integer(status_count + position, cached.name.kind == RequestKind::all_reduce ? 1 : 0);
  }
  for (const int64_t number : pending_) {
    if (!told_.contains(number)) {
      if (const auto position = cache_.position_of(queue_.at(number).request)) {
        own.set_integer(status_count + static_cast<int64_t>(*position), 1);
      }
    }
  }
  rank.write(bits_, own);
  const Ticket compared = rank.all_reduce(control_, bits_, Reduction::min, control(compare_bits));
  stands_ = Stands::agreeing;
  co_await rank.settle(compared);
  stands_ = Stands::elsewhere;
  const Values all = rank.read(bits_);
  Agreement agreed;
  agreed.has_uncached = all.integer(nothing_uncached) == 0;
  agreed.has_new = all.integer(nothing_new) == 0;
  agreed.closes = all.integer(nobody_closes) == 0;
  agreed.has_outdated = all.integer(nothing_outdated) == 0;
  const bool all_joined = all.integer(joined) == 1;  // nobody wants what is in the cache
  for (int64_t position = 0; position < count && !all_joined; ++position) {
    if (all.integer(status_count + position) == 1) {
      agreed.hits.push_back(static_cast<size_t>(position));
    }
  }
  co_return agreed;
}

std::vector<size_t> Negotiator::outdated() const {
  std::set<size_t> positions;
  for (const int64_t number : pending_) {
    if (const auto position = cache_.outdated_by(queue_.at(number).request)) {
      positions.insert(*position);
    }
  }
  return {positions.begin(), positions.end()};
}

// What one rank asks for in another form is forgotten by all, so that rank 0 compares the requests.
Program Negotiator::forget_outdated(Rank& rank) {
  const auto count = static_cast<int64_t>(cache_.positions());
  const Slice flags = control_numbers(rank, DType::uint8, count);
  Values own(DType::uint8, count);
  for (const size_t position : outdated()) {
    own.set_integer(static_cast<int64_t>(position), 1);
  }
  rank.write(flags, own);
  co_await rank.settle(rank.all_reduce(control_, flags, Reduction::max, control(compare_outdated)));
  const Values all = rank.read(flags);
  std::vector<size_t> positions;
  for (int64_t position = 0; position < count; ++position) {
    if (all.integer(position) == 1) {
      positions.push_back(static_cast<size_t>(position));
    }
  }
  cache_.erase(positions);
  rank.release(flags);
}

// Requests that no rank has seen before go to rank 0, which answers for all; in a process set to
// its first rank.
Program Negotiator::coordinate(Rank& rank, std::vector<TensorResponse>& responses) {
  const std::vector<int64_t> asked = uncached();
  std::vector<TensorResponse> requests;
  for (const int64_t number : asked) {
    requests.push_back({queue_.at(number).request, TensorResponse::Error::none});
    told_.insert(number);
  }
  const std::vector<int64_t> lengths = co_await gather_lengths(rank, std::ssize(asked));
  // Its own as well: where the lengths of the others were lost, none is known.
  const int64_t longest = std::max(std::ssize(asked), *std::ranges::max_element(lengths));
  const int32_t root = members_.front();
  const bool is_root = rank.id() == root;
  const Slice own = control_numbers(rank, DType::int64, longest * numbers_of_response);
  const Slice all =
      is_root ? control_numbers(rank, DType::int64, own.elements * std::ssize(members_)) : Slice{};
  rank.write(own, encoded(requests, own.elements));
  const Ticket gathered = rank.gather(control_, own, all, root, control(gather_requests));
  co_await rank.settle(gathered);
  std::vector<TensorResponse> ready;
  if (is_root) {
    const Values lists = rank.read(all);
    for (int32_t from = 0; from < std::ssize(members_); ++from) {
      const int64_t length = lengths[static_cast<size_t>(from)];
      const auto asked_for = decoded(lists, from * own.elements, length);
      if (!asked_for) {
        throw DamagedMessage();
      }
      for (const TensorResponse& request : *asked_for) {
        coordinator_->add(from, request.request);
      }
    }
    ready = coordinator_->take_ready();
    rank.release(all);
  }
  rank.release(own);
  co_await share_responses(rank, ready);
  responses.insert(responses.end(), ready.begin(), ready.end());
}

// A damaged list must not be carried out: this rank has asked for what is answered, or has joined,
// and then gives zeros to what others reduce.
void Negotiator::expect_fitting(const TensorResponse& response) const {
  const TensorName& name = response.request.name;
  const bool has_error = response.error != TensorResponse::Error::none;
  const bool is_gathered = name.kind == RequestKind::all_gather;
  const auto own = std::ranges::find_if(
      pending_, [&](int64_t number) { return queue_.at(number).request.name == name; });
  bool fits = has_joined_ && (has_error || (!is_gathered && name.kind != RequestKind::broadcast));
  if (name.kind != RequestKind::join && own != pending_.end()) {
    fits = has_error || (fit_together(queue_.at(*own).request, response.request) &&
                         (!is_gathered || response.parts.size() == members_.size()));
  }
  if (!fits) {
    throw DamagedMessage();
  }
}

Task<std::vector<int64_t>> Negotiator::gather_lengths(Rank& rank, int64_t own) {
  const Slice length = control_numbers(rank, DType::int64, 1);
  const Slice all = control_numbers(rank, DType::int64, std::ssize(members_));
  Values value(DType::int64, 1);
  value.set_integer(0, own);
  rank.write(length, value);
  const Ticket gathered =
      rank.all_gather(control_, length, all, control(negotiation_sites::gather_lengths));
  co_await rank.settle(gathered);
  const Values read = rank.read(all);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < read.size(); ++i) {
    lengths.push_back(read.integer(i));
  }
  rank.release(length);
  rank.release(all);
  co_return lengths;
}

Program Negotiator::share_responses(Rank& rank, std::vector<TensorResponse>& responses) {
  const Slice length = control_numbers(rank, DType::int64, 2);
  Values value(DType::int64, 2);
  value.set_integer(0, std::ssize(responses));
  value.set_integer(1, count_numbers(responses));
  rank.write(length, value);
  const int32_t root = members_.front();
  const Ticket told = rank.broadcast(control_, length, root, control(send_length));
  co_await rank.settle(told);
  const Values counts = rank.read(length);
  const int64_t count = counts.integer(0);
  rank.release(length);
  if (count == 0) {
    co_return;
  }
  if (count < 0 || counts.integer(1) < count * numbers_of_response) {
    throw DamagedMessage();
  }
  const Slice list = control_numbers(rank, DType::int64, counts.integer(1));
  if (rank.id() == root) {
    rank.write(list, encoded(responses, list.elements));
  }
  const Ticket sent = rank.broadcast(control_, list, root, control(send_responses));
  co_await rank.settle(sent);
  std::optional<std::vector<TensorResponse>> answer = decoded(rank.read(list), 0, count);
  if (!answer) {
    throw DamagedMessage();
  }
  std::ranges::for_each(*answer, [this](const auto& each) { expect_fitting(each); });
  responses = std::move(*answer);
  rank.release(list);
}

}  // namespace lockstep
