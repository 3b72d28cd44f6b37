#include <algorithm>

#include "backend/gloo/exchange.hpp"
#include "model/core/ensure.hpp"
#include "model/core/random.hpp"

namespace lockstep::backend {

namespace {

bool is_eager(const Part& part, const RankState& rank) {
  const Bytes limit = rank.shared.options.eager_limit;
  return limit > Bytes(0) && part.op().bytes <= limit;
}

class Send final : public Exchange {
 public:
  Send(const Part& part, RankState& rank) : part_(part), rank_(rank) {}

  void post() override {
    const Op& op = part_.op();
    const ValueView values =
        op.list().reads.empty() ? ValueView() : rank_.view(op.list().reads.front());
    const auto size = static_cast<size_t>(op.bytes.count());
    ensure(values.bytes.empty() || values.bytes.size() == size, "a send is as long as its slice");
    Offer offer;
    offer.communicator = part_.communicator();
    offer.payload_slot = rank_.next_payload_slot();
    offer.bytes = op.bytes.count();
    offer.tag = op.tag;
    offer.carries_values = values.bytes.empty() ? 0 : 1;
    // An eager send leaves its buffer free at once, and so goes as a copy.
    payload_ = is_eager(part_, rank_)
                   ? rank_.mailbox.send(op.peer, offer.payload_slot,
                                        std::vector(values.bytes.begin(), values.bytes.end()))
                   : rank_.mailbox.send(op.peer, offer.payload_slot, values);
    offer_ = rank_.matcher.offer(op.peer, offer);
  }

  void receive(Status&) override {}

  void deliver() override {
    if (is_eager(part_, rank_)) {
      ++rank_.shared.eager_sent;
      rank_.keep(std::move(offer_));
      rank_.keep(std::move(payload_));
      return;
    }
    if (offer_ != nullptr) {
      rank_.mailbox.wait(*offer_);
    }
    rank_.mailbox.wait(*payload_);
  }

 private:
  const Part& part_;
  RankState& rank_;
  std::unique_ptr<Message> offer_;
  std::unique_ptr<Message> payload_;
};

class Receive final : public Exchange {
 public:
  Receive(const Part& part, RankState& rank) : part_(part), rank_(rank), wanted_(part.wanted) {}

  void post() override {
    const Op& op = part_.op();
    if (wanted_ == nullptr) {
      wanted_ = rank_.matcher.want(part_.communicator(), op.peer, op.tag, op.bytes.count());
    }
    rank_.matcher.start(*wanted_);
  }

  void receive(Status& status) override {
    const Op& op = part_.op();
    rank_.matcher.wait(*wanted_);
    if (is_eager(part_, rank_)) {
      ++rank_.shared.eager_received;
    }
    if (wanted_->offer->carries_values != 0 && !op.list().writes.empty()) {
      const auto came = wanted_->payload->bytes();
      rank_.change(op.list().writes.front(), [came](auto memory) {
        std::ranges::copy(came.first(std::min(came.size(), memory.size())), memory.begin());
      });
    }
    if (op.peer == any_rank) {
      status.source = RankId{static_cast<uint32_t>(wanted_->offer->source)};
      status.bytes = op.bytes;
    }
  }

  void deliver() override {}

 private:
  const Part& part_;
  RankState& rank_;
  std::shared_ptr<WantedMessage> wanted_;
};

}  // namespace

std::unique_ptr<Exchange> make_send(const Part& part, RankState& rank) {
  return std::make_unique<Send>(part, rank);
}

std::unique_ptr<Exchange> make_receive(const Part& part, RankState& rank) {
  return std::make_unique<Receive>(part, rank);
}

}  // namespace lockstep::backend
