#include "backend/gloo/mailbox.hpp"

#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>

namespace lockstep::backend {

namespace {
// Hangs are ended by Mailbox::abort; a time-out inside Gloo would close the connections.
constexpr std::chrono::hours no_limit{1000};

template <class Call>
auto over_connection(const Call& call) {
  try {
    return call();
  } catch (const gloo::Exception&) {
    throw ConnectionBroke();
  }
}
}  // namespace

Message::Message(Mailbox& mailbox, Mailbox::Memory memory, bool is_send)
    : mailbox_(mailbox), memory_(std::move(memory)), is_send_(is_send) {}

Message::~Message() { mailbox_.forget(*this); }

Mailbox::Mailbox(int32_t rank, std::shared_ptr<gloo::Context> context, Progress& progress)
    : rank_(rank), context_(std::move(context)), progress_(progress) {}

Mailbox::~Mailbox() = default;

Mailbox::Memory Mailbox::to_receive(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  const std::shared_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(size);
  return {{memory.get(), size}, memory};
}

std::unique_ptr<Message> Mailbox::create(Memory memory, bool is_send, bool to_itself) {
  std::unique_ptr<Message> message(new Message(*this, std::move(memory), is_send));
  if (!to_itself) {
    message->buffer_ =
        context_->createUnboundBuffer(message->memory_.bytes.data(), message->memory_.bytes.size());
  }
  const std::lock_guard lock(mutex_);
  if (aborted_) {
    throw RunAborted();
  }
  messages_.insert(message.get());
  return message;
}

std::unique_ptr<Message> Mailbox::send(int32_t to, uint64_t slot, std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return send_memory(to, slot, {*owner, owner});
}

std::unique_ptr<Message> Mailbox::send(int32_t to, uint64_t slot, ValueView bytes) {
  // Gloo takes memory that may change, and does not change what it sends.
  auto* begin = const_cast<std::byte*>(bytes.bytes.data());
  return send_memory(to, slot, {{begin, bytes.bytes.size()}, std::move(bytes.owner)});
}

std::unique_ptr<Message> Mailbox::send_memory(int32_t to, uint64_t slot, Memory memory) {
  auto message = create(std::move(memory), true, to == rank_);
  if (to == rank_) {
    post_to_itself(*message, slot);
  } else {
    over_connection([&] { message->buffer_->send(to, slot); });
  }
  return message;
}

std::unique_ptr<Message> Mailbox::receive(int32_t from, uint64_t slot, int64_t bytes) {
  return receive_memory(from, slot, to_receive(bytes));
}

std::unique_ptr<Message> Mailbox::receive_into(int32_t from, uint64_t slot,
                                               std::span<std::byte> to) {
  return receive_memory(from, slot, {to, nullptr});
}

std::unique_ptr<Message> Mailbox::receive_memory(int32_t from, uint64_t slot, Memory memory) {
  auto message = create(std::move(memory), false, from == rank_);
  if (from == rank_) {
    post_to_itself(*message, slot);
  } else {
    over_connection([&] { message->buffer_->recv(from, slot); });
  }
  return message;
}

std::unique_ptr<Message> Mailbox::receive_any(std::span<const int32_t> from, uint64_t slot,
                                              int64_t bytes) {
  std::vector<int> others(from.begin(), from.end());
  std::erase(others, rank_);
  auto message = create(to_receive(bytes), false, others.empty());
  if (!others.empty()) {
    over_connection([&] { message->buffer_->recv(others, slot); });
  }
  return message;
}

void Mailbox::post_to_itself(Message& message, uint64_t slot) {
  const std::lock_guard lock(mutex_);
  OwnSlot& own = own_slots_[slot];
  (message.is_send_ ? own.sends : own.receives).push_back(&message);
  if (own.sends.empty() || own.receives.empty()) {
    return;
  }
  Message& sent = *own.sends.front();
  Message& received = *own.receives.front();
  const size_t bytes = std::min(sent.memory_.bytes.size(), received.memory_.bytes.size());
  std::ranges::copy(sent.memory_.bytes.first(bytes), received.memory_.bytes.begin());
  sent.exchanged_with_itself_ = received.exchanged_with_itself_ = true;
  own.sends.pop_front();
  own.receives.pop_front();
  if (own.sends.empty() && own.receives.empty()) {
    own_slots_.erase(slot);
  }
  changed_.notify_all();
}

int32_t Mailbox::wait(Message& message) {
  const Idle idle(progress_);
  int peer = rank_;
  if (message.buffer_ == nullptr) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return aborted_ || message.exchanged_with_itself_; });
    if (!message.exchanged_with_itself_) {
      throw RunAborted();
    }
    return peer;
  }
  const bool done = over_connection([&] {
    return message.is_send_ ? message.buffer_->waitSend(&peer, no_limit)
                            : message.buffer_->waitRecv(&peer, no_limit);
  });
  if (!done) {
    throw RunAborted();
  }
  return peer;
}

void Mailbox::wait_for_abort() {
  const Idle idle(progress_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return aborted_; });
  throw RunAborted();
}

void Mailbox::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  for (Message* message : messages_) {
    if (message->buffer_ != nullptr) {
      message->is_send_ ? message->buffer_->abortWaitSend() : message->buffer_->abortWaitRecv();
    }
  }
  changed_.notify_all();
}

void Mailbox::forget(Message& message) {
  const std::lock_guard lock(mutex_);
  messages_.erase(&message);
  if (message.buffer_ == nullptr) {
    for (auto& [slot, own] : own_slots_) {
      std::erase(own.sends, &message);
      std::erase(own.receives, &message);
    }
  }
}

}  // namespace lockstep::backend
