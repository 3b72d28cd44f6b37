// Weights that are freed after a forward and gathered again for its backward, as FSDP and ZeRO-3
// do: the forward's graph serves, does not keep their memory, and reads what was gathered last.
#include <catch2/catch.hpp>

#include "backend/libtorch/content_identity.hpp"
#include "backend/libtorch/tensor_buffers.hpp"
#include "backend/libtorch/tensor_kernels.hpp"
#include "backend/libtorch/tensor_values.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::gathered_again_test {

namespace {

using backend::ContentIdentities;

/// One layer as a unit: all its parameters in one buffer, which an all_gather fills.
class Unit {
 public:
  Unit(const Network& network, const LayerValues& values) : network_(network), values_(values) {
    input_ = buffer_of(values.input);
    output_ = buffer_of(Values(values.output_gradient.dtype(), values.output_gradient.size()));
    output_gradient_ = buffer_of(values.output_gradient);
    input_gradient_ = buffer_of(Values(values.output_gradient.dtype(), values.input.size()));
    for (const Values& gradient : values.gradients) {
      gradients_.push_back(buffer_of(gradient));
      elements_ += gradient.size();
    }
    shard_ = buffer_of(Values(DType::fp32, 1));
  }

  void gather(double factor = 1) {
    whole_ = add_buffer(DType::fp32, elements_);
    const uint64_t part = buffers_.identity_of(shard_);
    int64_t begin = 0;
    for (Values parameter : values_.parameters) {
      scale(parameter, factor);
      buffers_.memory(whole_.part(begin, parameter.size())).copy_(backend::tensor_of(parameter));
      begin += parameter.size();
    }
    buffers_.written_by_others(whole_);
    buffers_.gathered(7, part, whole_);
  }
  /// The memory stays with the caller alone, if nothing else keeps it.
  at::Tensor free() {
    at::Tensor memory = backend::tensor_of(Values(DType::fp32, 1));  // no view, as those keep more
    memory.set_(buffers_.memory(whole_).storage(), 0, {elements_});
    kernels_.released(whole_.buffer);
    buffers_.remove(whole_.buffer);
    return memory;
  }
  void update() {
    const Slice gradient = buffer_of(Values::of(DType::fp32, {1}));
    run(Kernel::sgd_step, {gradient}, {shard_}, {0.5, 0, 0, 1});
  }

  void forward() {
    run(Kernel::layer_forward, with_parameters({input_}), {output_}, {samples(), 1});
  }
  void backward() {
    const bool no_input_gradient = !is_floating(values_.input.dtype());
    std::vector<Slice> writes{no_input_gradient ? input_gradient_.part(0, 0) : input_gradient_};
    writes.insert(writes.end(), gradients_.begin(), gradients_.end());
    run(Kernel::layer_backward, with_parameters({output_gradient_, input_}), writes, {samples()});
  }

  int64_t forwards_again() const { return kernels_.forwards_again(); }
  std::vector<Values> gradients() {
    std::vector<Values> all;
    for (const Slice& gradient : gradients_) {
      all.push_back(backend::values_of(buffers_.load(gradient), gradient.dtype));
    }
    all.push_back(backend::values_of(buffers_.load(input_gradient_), input_gradient_.dtype));
    return all;
  }

 private:
  double samples() const { return static_cast<double>(values_.samples); }
  Slice add_buffer(DType dtype, int64_t elements) {
    const BufferId buffer{next_++};
    buffers_.add_buffer(buffer, {dtype, Purpose::workspace, DeviceId{0}, elements},
                        at::TensorOptions(at::kCPU), true);
    return {buffer, dtype, 0, elements};
  }
  Slice buffer_of(const Values& values) {
    const Slice slice = add_buffer(values.dtype(), values.size());
    buffers_.store(slice, backend::tensor_of(values));
    return slice;
  }
  std::vector<Slice> with_parameters(std::vector<Slice> reads) const {
    int64_t begin = 0;
    for (const Values& parameter : values_.parameters) {
      reads.push_back(whole_.part(begin, parameter.size()));
      begin += parameter.size();
    }
    return reads;
  }
  void run(Kernel kernel, const std::vector<Slice>& reads, const std::vector<Slice>& writes,
           const std::vector<double>& scalars) {
    const OpLists lists{{}, reads, writes, {}, scalars};
    Op op;
    op.kind = OpKind::compute;
    op.kernel = kernel;
    op.lists = &lists;
    kernels_.execute(op, buffers_, &network_);
  }

  const Network& network_;
  const LayerValues& values_;
  backend::TensorBuffers buffers_;
  backend::TensorKernels kernels_{0};
  uint32_t next_ = 1;
  int64_t elements_ = 0;
  Slice input_, output_, output_gradient_, input_gradient_, shard_, whole_;
  std::vector<Slice> gradients_;
};

/// Layers with parameters and without buffers.
template <class Test>
void for_each_layer(const Test& test) {
  int tested = 0;
  for (const Network& network : one_layer_of_each_kind()) {
    const Layer& layer = network.layers[0];
    if (!layer.parameters.empty() && layer.buffers.empty() && !layer.tied_layer) {
      INFO(layer.name);
      test(network, values_for(layer, DType::fp32, 4, reals));
      ++tested;
    }
  }
  CHECK(tested >= 8);
}

std::vector<Values> gradients_without_freeing(const Network& network, const LayerValues& values,
                                              double factor) {
  Unit unit(network, values);
  unit.gather(factor);
  unit.forward();
  unit.backward();
  CHECK(unit.forwards_again() == 0);
  return unit.gradients();
}

Slice window(uint32_t buffer, int64_t begin, int64_t elements) {
  return {BufferId{buffer}, DType::fp32, begin, elements};
}

}  // namespace

TEST_CASE("weights that were freed and gathered again do not run the forward twice") {
  for_each_layer([](const Network& network, const LayerValues& values) {
    Unit unit(network, values);
    unit.gather();
    unit.forward();
    const at::Tensor freed = unit.free();
    CHECK(freed.storage().use_count() == 1);  // no graph keeps it
    freed.fill_(NAN);                         // and others use it now
    unit.gather();
    unit.backward();
    CHECK(unit.forwards_again() == 0);
    CHECK((unit.gradients() == gradients_without_freeing(network, values, 1)));
  });
}

TEST_CASE("weights that were updated between forward and backward run the forward again") {
  for_each_layer([](const Network& network, const LayerValues& values) {
    Unit unit(network, values);
    unit.gather();
    unit.forward();
    unit.free();
    unit.update();
    unit.gather(2);
    unit.backward();
    CHECK(unit.forwards_again() == 1);
    CHECK((unit.gradients() == gradients_without_freeing(network, values, 2)));
  });
}

TEST_CASE("a content is known by where it came from") {
  ContentIdentities known;
  CHECK(known.of(window(1, 0, 4)) == 0);
  known.written(window(1, 0, 8));
  const uint64_t whole = known.of(window(1, 0, 8));
  const uint64_t half = known.of(window(1, 4, 4));
  CHECK(whole != 0);
  CHECK(half != known.of(window(1, 0, 4)));
  known.written(window(1, 2, 1));
  CHECK(known.of(window(1, 0, 8)) != whole);
  CHECK(known.of(window(1, 4, 4)) == half);
  CHECK(known.of(window(1, 4, 5)) == 0);  // nothing is known of the last one
  known.moved(window(1, 4, 4), window(2, 0, 4));
  known.moved(window(1, 4, 4), window(3, 0, 4));
  CHECK(known.of(window(2, 0, 4)) == known.of(window(3, 0, 4)));
  known.forget(BufferId{2});
  CHECK(known.of(window(2, 0, 4)) == 0);
}

TEST_CASE("what ranks gather is the same until a part or any parameter is updated") {
  ContentIdentities known;
  known.written(window(1, 0, 4));
  const auto gathered = [&known](uint32_t to, uint64_t communicator) {
    known.gathered(communicator, known.of(window(1, 0, 4)), window(to, 0, 8));
    return known.of(window(to, 2, 3));
  };
  const uint64_t first = gathered(2, 7);
  CHECK(gathered(3, 7) == first);
  CHECK(gathered(4, 8) != first);
  known.updated();
  CHECK(gathered(5, 7) != first);
  const uint64_t second = gathered(6, 7);
  known.written(window(1, 0, 1));
  CHECK(gathered(7, 7) != second);
}

}  // namespace lockstep::libtorch_test::gathered_again_test
