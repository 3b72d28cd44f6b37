#include "model/strategy/exchange/negotiation/negotiator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/strategy/exchange/negotiation/mismatch.hpp"
#include "model/strategy/exchange/negotiation/negotiation_sites.hpp"

namespace lockstep {

using namespace negotiation_sites;

namespace {

/// The calls of the threads to each other: beside those of the device. Those of a process set wait
/// for none of all ranks.
constexpr StreamId control_stream = stream(queue::first_group);
constexpr StreamId control_stream_of_set = stream(queue::first_group + 1);
/// A number that no cycle takes in at once.
constexpr uint32_t most_taken = 1u << 20;
/// What closes the queue. No rank is asked for it.
constexpr int64_t closing = -1;

TensorRequest closing_request() {
  TensorRequest request;
  request.name = {RequestKind::join, NameSpace::unnamed, closing};
  return request;
}

std::string text_of(const Submission& failed) {
  switch (failed.error) {
    case TensorResponse::Error::none: break;
    case TensorResponse::Error::mismatch: return failed.failure;
    case TensorResponse::Error::not_with_join:
      return std::string(negotiation_errors::not_with_join);
    case TensorResponse::Error::shut_down: return std::string(negotiation_errors::shut_down);
    case TensorResponse::Error::damaged:
      return "HorovodInternalError: Horovod has been shut down: what another rank has sent cannot "
             "be read";
  }
  return "";
}

}  // namespace

CommunicationOptions Negotiator::control(std::string_view step) const {
  return {options_.process_set.empty() ? control_stream : control_stream_of_set, {}, site_id(step)};
}

// The host

Program Negotiator::make_groups(Rank& rank) {
  const CommunicationOptions options{
      communication_stream, {}, site_id(negotiation_sites::make_groups)};
  const std::vector<int64_t>& set = options_.process_set;
  const auto make = [&] {
    return set.empty() ? rank.split_group(world_group, 0, options)
                       : rank.new_group(world_group, set, options);
  };
  const Rank::NewGroup control = make();
  const Rank::NewGroup data = make();
  const Ticket made[] = {control.ready, data.ready};
  co_await rank.settle_all(made);
  control_ = control.group;
  data_ = data.group;
  has_groups_ = true;
  members_.assign(set.begin(), set.end());
  if (set.empty()) {
    members_.resize(static_cast<size_t>(rank.world_size()));
    std::iota(members_.begin(), members_.end(), 0);
  }
}

Program Negotiator::start(Rank& rank) {
  if (!has_groups_) {
    co_await make_groups(rank);
  }
  if (!is_open_) {
    is_open_ = true;
    queue_.open(rank);
    if (rank.id() == members_.front()) {
      coordinator_ = std::make_unique<Coordinator>(static_cast<int32_t>(members_.size()));
    }
  }
  is_running_ = true;
  closes_ = shut_down_ = is_damaged_ = false;
  ended_ = {};
  // The thread may outlive the strategy that started it.
  Lane& thread = rank.start_lane([](std::shared_ptr<Negotiator> own, Rank& on) -> Program {
    co_await own->run(on);
  }(shared_from_this(), rank));
  thread.is_described_by(*this);
}

int64_t Negotiator::submit(Rank& rank, const TensorRequest& request, const Slice& data,
                           const Slice& whole, Ticket ready, std::string name) {
  return queue_.add(rank, {request, data, whole, ready, {}, {}, {}, {}, std::move(name)});
}

int64_t Negotiator::submit_unnamed(Rank& rank, TensorRequest request, const Slice& data,
                                   const Slice& whole, Ticket ready) {
  request.name.space = NameSpace::unnamed;
  request.name.number = queue_.added();
  return submit(rank, request, data, whole, ready,
                fmt::format("{}.noname.{}", prefix_of(request.name.kind), request.name.number + 1));
}

Task<Slice> Negotiator::wait(Rank& rank, int64_t handle, SiteId site) {
  co_await rank.settle(queue_.at(handle).carried_out);
  const Submission carried_out = queue_.at(handle);
  queue_.forget(handle);
  if (carried_out.error != TensorResponse::Error::none) {
    throw ProgramException(site, text_of(carried_out));
  }
  if (carried_out.result) {
    co_await rank.settle(carried_out.result);
  }
  co_return carried_out.whole;
}

Program Negotiator::stop(Rank& rank) {
  ended_ = rank.promise();
  submit(rank, closing_request(), {}, {}, {});
  co_await rank.settle(ended_);
  runner_.release(rank);
  is_running_ = false;
}

void Negotiator::abandon(Rank& rank) noexcept {
  try {
    ended_ = rank.promise();
    submit(rank, closing_request(), {}, {}, {});
  } catch (...) {  // the world itself ends
  }
}

// The background thread

Program Negotiator::run(Rank& rank) {
  for (;;) {
    co_await take_submissions(rank);
    try {
      if (!shut_down_) {
        co_await run_cycle(rank);
      }
    } catch (const DamagedMessage&) {
      shut_down_ = is_damaged_ = true;  // Horovod's loop ends, and fails all that it was given
    }
    if (shut_down_) {
      fail_pending(rank);
      if (closes_) {
        break;
      }
    }
  }
  rank.release(std::exchange(bits_, Slice{}));
  rank.fulfil(ended_);
}

Program Negotiator::run_cycle(Rank& rank) {
  const Agreement agreed = co_await agree(rank);
  shut_down_ = agreed.closes;
  if (shut_down_) {
    co_return;
  }
  std::vector<TensorResponse> responses;
  for (const size_t position : agreed.hits) {
    responses.push_back(cache_.at(position));
    expect_fitting(responses.back());
  }
  if (agreed.has_outdated) {
    co_await forget_outdated(rank);
  }
  if (agreed.has_uncached) {
    co_await coordinate(rank, responses);
  }
  co_await carry_out(rank, responses);
  if (responses.empty() && !agreed.has_new) {
    co_await wait_for_word(rank);
  }
  rank.host(options_.cycle_time, site_id(sleep));
}

void Negotiator::fail_pending(Rank& rank) {
  for (const int64_t number : std::exchange(pending_, {})) {
    Submission& submission = queue_.at(number);
    submission.error =
        is_damaged_ ? TensorResponse::Error::damaged : TensorResponse::Error::shut_down;
    rank.fulfil(submission.carried_out);
  }
  told_.clear();
  has_joined_ = false;
}

// What a cycle finds in the queue is a matter of time, so it is a choice; a rank without anything
// to do waits for its host.
Program Negotiator::take_submissions(Rank& rank) {
  const bool is_idle = pending_.empty() && !closes_;
  if (is_idle) {
    stands_ = Stands::idle;
    take_until_ = taken_ + 1;
    co_await take(rank);
  }
  const auto found = static_cast<uint32_t>(queue_.added() - taken_);
  const uint32_t count = rank.choose(site_id(negotiation_sites::take), ChoiceKind::ready_set,
                                     most_taken, std::min(found, most_taken - 1));
  took_something_ = is_idle || count > 0;
  stands_ = Stands::taking;
  take_until_ = taken_ + count;
  co_await take(rank);
  stands_ = Stands::elsewhere;
}

Program Negotiator::take(Rank& rank) {
  while (taken_ < take_until_) {
    co_await rank.settle(queue_.announced(taken_));
    const TensorRequest& request = queue_.at(taken_).request;
    if (request.name.kind == RequestKind::join && request.name.number == closing) {
      closes_ = true;
      rank.fulfil(queue_.at(taken_).carried_out);
      queue_.forget(taken_);
    } else {
      has_joined_ = has_joined_ || request.name.kind == RequestKind::join;
      pending_.push_back(taken_);
    }
    ++taken_;
  }
}

Program Negotiator::carry_out(Rank& rank, const std::vector<TensorResponse>& responses) {
  std::vector<ResponseRunner::Item> items;
  for (const TensorResponse& response : responses) {
    const bool is_join = response.request.name.kind == RequestKind::join;
    const auto own = std::ranges::find_if(pending_, [&](int64_t number) {
      const TensorName& name = queue_.at(number).request.name;
      return is_join ? name.kind == RequestKind::join : name == response.request.name;
    });
    ResponseRunner::Item& item = items.emplace_back();
    item.response = response;
    if (own != pending_.end()) {
      item.submission = &queue_.at(*own);
      item.number = *own;
      if (response.error == TensorResponse::Error::mismatch) {
        item.submission->failure = mismatch_text(item.submission->name, response, members_);
      }
      told_.erase(*own);
      pending_.erase(own);
    }
    if (is_join) {
      has_joined_ = false;
    } else if (response.error == TensorResponse::Error::none) {
      cache_.put(response,
                 item.submission == nullptr ? response.request : item.submission->request);
    }
  }
  const ResponseRunner::Among among{data_, members_};
  stands_ = Stands::carrying_out;
  co_await runner_.run(rank, among, std::move(items));
  stands_ = Stands::elsewhere;
}

// No rank had anything new, and no tensor is ready on all: another round would find the same. The
// first rank to which its host hands something over says so to all others, and they to all.
Program Negotiator::wait_for_word(Rank& rank) {
  const Slice word = control_numbers(rank, DType::uint8, 1);
  const Slice heard = control_numbers(rank, DType::uint8, rank.world_size());
  std::vector<Ticket> words;
  for (const int32_t other : members_) {
    if (other != rank.id()) {
      const StreamId from = stream(static_cast<uint8_t>(queue::first_receive + other % 64));
      words.push_back(rank.receive(control_, heard.part(other, 1), other, 0,
                                   {from, {}, site_id(wait_for_ranks)}));
    }
  }
  std::vector<Ticket> any = words;
  any.push_back(queue_.announced(taken_));
  stands_ = Stands::waiting_for_word;
  co_await rank.settle_any(any, site_id(wait_for_ranks));
  for (const int32_t other : members_) {
    if (other != rank.id()) {
      const StreamId to = stream(static_cast<uint8_t>(queue::first_send + other % 64));
      words.push_back(rank.send(control_, word, other, 0, {to, {}, site_id(wait_for_ranks)}));
    }
  }
  stands_ = Stands::giving_word;
  co_await rank.settle_all(words);
  stands_ = Stands::elsewhere;
  rank.release(word);
  rank.release(heard);
}

}  // namespace lockstep
