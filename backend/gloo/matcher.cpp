#include "backend/gloo/matcher.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/core/op.hpp"
#include "model/core/random.hpp"

namespace lockstep::backend {

namespace {

constexpr uint8_t dismissal = 1;
constexpr uint8_t probe = 2;

bool accepts(const WantedMessage& wanted, const Offer& offer) {
  if (wanted.communicator != offer.communicator || wanted.tag != offer.tag) {
    return false;
  }
  return wanted.source == any_rank ? wanted.bytes == offer.bytes : wanted.source == offer.source;
}

}  // namespace

Matcher::Matcher(int32_t rank, int32_t world_size, uint64_t run, Mailbox& mailbox,
                 Progress& progress)
    : rank_(rank),
      world_(static_cast<size_t>(world_size)),
      run_(run),
      mailbox_(mailbox),
      progress_(progress) {
  std::iota(world_.begin(), world_.end(), 0);
}

Matcher::~Matcher() {
  if (listener_.joinable()) {
    listener_.join();
  }
}

uint64_t Matcher::offers_slot() const { return random_key(run_, 1); }

std::unique_ptr<Message> Matcher::offer(int32_t to, Offer offer) {
  if (to == rank_) {
    offer.source = rank_;
    take(offer);
    return nullptr;
  }
  std::vector<std::byte> bytes(sizeof offer);
  std::memcpy(bytes.data(), &offer, sizeof offer);
  return mailbox_.send(to, offers_slot(), std::move(bytes));
}

void Matcher::dismiss(int32_t other) {
  const Working working(progress_);
  Offer goodbye;
  goodbye.goodbye = dismissal;
  mailbox_.wait(*offer(other, goodbye));
}

std::shared_ptr<WantedMessage> Matcher::want(uint64_t communicator, int32_t source, int32_t tag,
                                             int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!listener_.joinable() && world_.size() > 1) {
    listener_ = std::thread([this] { listen(); });
  }
  auto wanted = std::make_shared<WantedMessage>(communicator, source, tag, bytes);
  const auto offered =
      std::ranges::find_if(offers_, [&](const Offer& offer) { return accepts(*wanted, offer); });
  if (offered == offers_.end()) {
    wanted_.push_back(wanted);
  } else {
    wanted->offer = *offered;
    offers_.erase(offered);
  }
  return wanted;
}

void Matcher::start(WantedMessage& wanted) {
  const std::lock_guard lock(mutex_);
  wanted.started = true;
  begin_payload(wanted);
}

void Matcher::begin_payload(WantedMessage& wanted) {
  if (wanted.started && wanted.offer && wanted.offer->bytes == wanted.bytes) {
    wanted.payload = mailbox_.receive(wanted.offer->source, wanted.offer->payload_slot,
                                      wanted.offer->carries_values != 0 ? wanted.bytes : 0);
  }
}

void Matcher::wait(WantedMessage& wanted) {
  {
    const Idle idle(progress_);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return aborted_ || wanted.offer.has_value(); });
    if (aborted_) {
      throw RunAborted();
    }
  }
  if (wanted.payload == nullptr) {
    mailbox_.wait_for_abort();
  }
  mailbox_.wait(*wanted.payload);
}

void Matcher::take(const Offer& offer) {
  const std::lock_guard lock(mutex_);
  const auto taker = [&](bool named) {
    return std::ranges::find_if(wanted_, [&](const auto& wanted) {
      return (wanted->source != any_rank) == named && accepts(*wanted, offer);
    });
  };
  auto found = taker(true);
  if (found == wanted_.end()) {
    found = taker(false);
  }
  if (found == wanted_.end()) {
    offers_.push_back(offer);
    return;
  }
  const std::shared_ptr<WantedMessage> wanted = *found;
  wanted_.erase(found);
  wanted->offer = offer;
  begin_payload(*wanted);
  changed_.notify_all();
}

void Matcher::listen() {
  const Working working(progress_);
  try {
    while (listen_once() || forget_gone_peers()) {
    }
  } catch (const RunAborted&) {
    return;
  }
}

// Takes offers until it is dismissed, or until a connection breaks: false.
bool Matcher::listen_once() {
  try {
    const auto message = mailbox_.receive_any(world_, offers_slot(), sizeof(Offer));
    const int32_t source = mailbox_.wait(*message);
    Offer offer;
    std::memcpy(&offer, message->bytes().data(), sizeof offer);
    if (offer.goodbye == dismissal) {
      world_.clear();
    } else if (offer.goodbye == 0) {
      offer.source = source;
      take(offer);
    }
    return !world_.empty();
  } catch (const ConnectionBroke&) {
    return false;
  }
}

// Who is still there is heard on; whoever is gone shows when something is sent to it. False when
// there is nobody left to hear, or nobody is gone.
bool Matcher::forget_gone_peers() {
  Offer nothing;
  nothing.goodbye = probe;
  const size_t before = world_.size();
  std::erase_if(world_, [&](int32_t peer) {
    try {
      if (peer != rank_) {
        probes_.push_back(offer(peer, nothing));
      }
      return false;
    } catch (const ConnectionBroke&) {
      return true;
    }
  });
  const std::lock_guard lock(mutex_);
  broken_ = broken_ || before > 0;
  return world_.size() > 1 && world_.size() < before;
}

void Matcher::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

bool Matcher::is_clean() {
  const std::lock_guard lock(mutex_);
  return offers_.empty() && !broken_;
}

}  // namespace lockstep::backend
