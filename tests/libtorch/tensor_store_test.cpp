// What the CPU program keeps its buffers in: tensors that kernels work on, and may leave behind.
#include <algorithm>
#include <catch2/catch.hpp>

#include "backend/libtorch/tensor_store.hpp"
#include "tests/libtorch/on_tensors.hpp"

namespace lockstep::libtorch_test::tensor_store_test {

namespace {

using backend::TensorStore;

constexpr BufferId first{1};
constexpr BufferId second{2};
const Slice whole{first, DType::fp32, 0, 4};

void add(TensorStore& store, BufferId buffer) {
  store.add(buffer, BufferSpec{DType::fp32, Purpose::workspace, DeviceId{0}, 4});
}

Values held(TensorStore& store, const Slice& slice) {
  const at::Tensor tensor = store.load(slice);
  return backend::values_of(tensor, slice.dtype);
}

void fill(TensorStore& store, const Slice& slice, const Values& values) {
  store.change(slice, [&](auto memory) { std::ranges::copy(values.bytes(), memory.begin()); });
}

at::Tensor four(DType dtype, double number) {
  return backend::tensor_of(Values::of(dtype, {number, number, number, number}));
}

Execute on_store() {
  return on_tensors(at::TensorOptions(at::kCPU), backend::BufferMemory::taken_over);
}

}  // namespace

TEST_CASE("a buffer holds zeros until something is written") {
  TensorStore store;
  add(store, first);
  CHECK(held(store, whole) == Values(DType::fp32, 4));
  CHECK_FALSE(store.load({second, DType::fp32, 0, 4}).defined());
}

TEST_CASE("a kernel's own tensor becomes the buffer, a tensor that others see is copied") {
  TensorStore store;
  add(store, first);
  add(store, second);
  const at::Tensor own = four(DType::fp32, 3);
  store.give(whole, own);
  CHECK(store.load(whole).const_data_ptr() == own.const_data_ptr());

  const Slice other{second, DType::fp32, 0, 4};
  store.give(other, store.load(whole));  // the memory of the first buffer
  CHECK(store.load(other).const_data_ptr() != own.const_data_ptr());
  fill(store, other, Values::of(DType::fp32, {1, 2, 3, 4}));
  CHECK(held(store, whole) == Values::of(DType::fp32, {3, 3, 3, 3}));
}

TEST_CASE("what does not fit a buffer exactly is copied into it, rounded") {
  TensorStore store;
  add(store, first);
  const at::Tensor doubles = four(DType::fp64, 0.1);
  store.give(whole, doubles);
  CHECK(held(store, whole) == Values::of(DType::fp32, {0.1, 0.1, 0.1, 0.1}));
  store.give({first, DType::fp32, 1, 2}, backend::tensor_of(Values::of(DType::fp32, {7, 7})));
  CHECK(held(store, whole) == Values::of(DType::fp32, {0.1, 7, 7, 0.1}));
}

TEST_CASE("the first gradient is taken, the next is added to it") {
  TensorStore store;
  add(store, first);
  const at::Tensor gradient = four(DType::fp32, 1.5);
  store.add(whole, gradient);
  CHECK(store.load(whole).const_data_ptr() == gradient.const_data_ptr());
  store.add(whole, four(DType::fp32, 1));
  store.add({first, DType::fp32, 0, 2}, backend::tensor_of(Values::of(DType::fp32, {1, 1})));
  CHECK(held(store, whole) == Values::of(DType::fp32, {3.5, 3.5, 2.5, 2.5}));
}

TEST_CASE("a view outlives its buffer") {
  TensorStore store;
  add(store, first);
  fill(store, whole, Values::of(DType::fp32, {1, 2, 3, 4}));
  const ValueView view = store.view({first, DType::fp32, 1, 2});
  store.remove(first);
  Values seen(DType::fp32, 2);
  REQUIRE(view.bytes.size() == 8);
  std::ranges::copy(view.bytes, seen.bytes().begin());
  CHECK(seen == Values::of(DType::fp32, {2, 3}));
}

TEST_CASE("a change by others counts as one, so that no graph of the old values is used") {
  TensorStore store;
  add(store, first);
  const at::Tensor before = store.load(whole);
  const int64_t version = before._version();
  fill(store, whole, Values::of(DType::fp32, {1, 2, 3, 4}));
  CHECK(before._version() > version);
}

TEST_CASE("layers on buffers that take tensors over are those on copies") {
  for (const Network& network : one_layer_of_each_kind()) {
    INFO(name_of(network.layers[0].kind));
    for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16}) {
      // A product of matrices adds up in an order that depends on where its operands lie.
      const LayerValues values = values_for(network.layers[0], dtype, 4, integers);
      const LayerResult found = run_layer(on_store(), network, 0, values);
      const LayerResult copied = run_layer(libtorch(), network, 0, values);
      CHECK(distance(found.output, copied.output) <=
            roundings(256, dtype) * std::max(1.0, greatest(copied.output)));
      REQUIRE(found.gradients.size() == copied.gradients.size());
      for (size_t i = 0; i < found.gradients.size(); ++i) {
        CHECK(distance(found.gradients[i], copied.gradients[i]) <=
              roundings(256, dtype) * std::max(1.0, greatest(copied.gradients[i])));
      }
      CHECK((found.buffers == copied.buffers));
    }
  }
}

}  // namespace lockstep::libtorch_test::tensor_store_test
