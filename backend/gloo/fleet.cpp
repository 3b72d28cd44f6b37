#include "backend/gloo/fleet.hpp"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "backend/gloo/pipe_signal.hpp"

namespace lockstep::backend {

namespace {

constexpr std::chrono::seconds connect_timeout{30};

std::shared_ptr<gloo::transport::Device> loopback_device() {
  gloo::transport::tcp::attr address;
  address.hostname = "127.0.0.1";
  // The device's thread inherits the mask of the thread that makes it.
  const PipeSignalBlocked blocked;
  return gloo::transport::tcp::CreateDevice(address);
}

// Calls `work(rank)` for all ranks at once, since connecting and closing wait for each other.
void on_all_ranks(int32_t world_size, const std::function<void(int32_t)>& work) {
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < world_size; ++rank) {
    threads.emplace_back(work, rank);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

Fleet::Contexts connect(std::shared_ptr<gloo::transport::Device> device, int32_t world_size) {
  Fleet::Contexts contexts(static_cast<size_t>(world_size));
  std::vector<std::string> errors(static_cast<size_t>(world_size));
  gloo::rendezvous::HashStore store;
  on_all_ranks(world_size, [&](int32_t rank) {
    const auto index = static_cast<size_t>(rank);
    try {
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, world_size);
      context->setTimeout(connect_timeout);
      std::shared_ptr<gloo::transport::Device> shared = device;
      context->connectFullMesh(store, shared);
      contexts[index] = std::move(context);
    } catch (const std::exception& error) {
      errors[index] = error.what();
    }
  });
  for (const std::string& error : errors) {
    if (!error.empty()) {
      throw loopback_unavailable(error);
    }
  }
  return contexts;
}

}  // namespace

Fleet::~Fleet() {
  while (!contexts_.empty()) {
    discard(contexts_.begin()->first);
  }
}

const Fleet::Contexts& Fleet::connected(int32_t world_size) {
  const auto known = contexts_.find(world_size);
  if (known != contexts_.end()) {
    return known->second;
  }
  if (world_size == 1) {
    return contexts_.emplace(1, Contexts(1)).first->second;
  }
  if (device_ == nullptr) {
    try {
      device_ = loopback_device();
    } catch (const std::exception& error) {
      throw loopback_unavailable(error.what());
    }
  }
  return contexts_.emplace(world_size, connect(device_, world_size)).first->second;
}

void Fleet::discard(int32_t world_size) {
  const auto known = contexts_.find(world_size);
  if (known == contexts_.end()) {
    return;
  }
  // Each connection waits for the device's thread to let go of it; together they wait once.
  Contexts& contexts = known->second;
  on_all_ranks(world_size, [&](int32_t rank) { contexts[static_cast<size_t>(rank)].reset(); });
  contexts_.erase(known);
}

}  // namespace lockstep::backend
