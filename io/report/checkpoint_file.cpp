#include "io/report/checkpoint_file.hpp"

#include <algorithm>
#include <memory>

#include "io/report/report_envelope.hpp"
#include "io/report/report_fields.hpp"

namespace lockstep {

namespace {

constexpr const char* checkpoint_format = "lockstep checkpoint";
constexpr const char* attempt_format = "lockstep attempt";

// A function of this name for the values of a report is in another file of this folder.
Json json_of_saved(const Values& values) {
  return {static_cast<int>(values.dtype()), binary_of(values.bytes())};
}

Values saved_values_of(const Json& json) {
  const auto dtype = enumerator_of(json.at(0), DType::uint8);
  const auto bytes = values_of_binary<std::byte>(json.at(1));
  const auto element = static_cast<size_t>(size_of(dtype));
  if (bytes.size() % element != 0) {
    throw ReportError("a tensor of the checkpoint is cut short: run the ranks again");
  }
  Values values(dtype, static_cast<int64_t>(bytes.size() / element));
  std::ranges::copy(bytes, values.bytes().begin());
  return values;
}

Json json_of(const SavedTensor& tensor) {
  Json state = Json::array();
  for (const Values& values : tensor.state) {
    state.push_back(json_of_saved(values));
  }
  return {{"value", json_of_saved(tensor.value)}, {"state", state}, {"steps", tensor.steps}};
}

SavedTensor saved_tensor_of(const Json& json) {
  SavedTensor tensor{saved_values_of(json.at("value")), {}, count_of(json.at("steps"))};
  for (const Json& values : list_at(json, "state")) {
    tensor.state.push_back(saved_values_of(values));
  }
  return tensor;
}

Json json_of(const SavedObject& object) {
  return {{"numbers", binary_of(std::span(object.numbers))}, {"texts", object.texts}};
}

SavedObject saved_object_of(const Json& json) {
  SavedObject object{values_of_binary<double>(json.at("numbers")), {}};
  for (const Json& text : list_at(json, "texts")) {
    object.texts.push_back(text);
  }
  return object;
}

Json json_of(const FitPosition& position) {
  return {position.global_step, position.batches_that_stepped, position.epoch, position.batch,
          position.batches};
}

FitPosition position_of(const Json& json) {
  return {count_of(json.at(0)), count_of(json.at(1)), count_of(json.at(2)), count_of(json.at(3)),
          count_of(json.at(4))};
}

Json objects_json(const std::vector<SavedObject>& objects) {
  Json all = Json::array();
  for (const SavedObject& object : objects) {
    all.push_back(json_of(object));
  }
  return all;
}

std::vector<SavedObject> saved_objects_of(const Json& json) {
  check_list(json);
  std::vector<SavedObject> objects;
  for (const Json& object : json) {
    objects.push_back(saved_object_of(object));
  }
  return objects;
}

Json json_of(const SavedTraining& saved) {
  Json json = {{"format", checkpoint_format},
               {"file", saved.file},
               {"files", saved.files},
               {"number", saved.number},
               {"weights_only", saved.weights_only},
               {"bytes", saved.bytes.count()},
               {"position", json_of(saved.position)},
               {"learning_rates", binary_of(std::span(saved.learning_rates))},
               {"schedulers", objects_json(saved.schedulers)},
               {"callbacks", objects_json(saved.callbacks)},
               {"parameters", Json::array()},
               {"buffers", Json::array()},
               {"trained", Json::array()}};
  for (const SavedTensor& tensor : saved.parameters) {
    json["parameters"].push_back(json_of(tensor));
  }
  for (const Values& values : saved.buffers) {
    json["buffers"].push_back(json_of_saved(values));
  }
  for (const TrainedSamples& trained : saved.trained) {
    const std::vector<int64_t> samples = trained.samples.list();
    json["trained"].push_back(
        {{"epoch", trained.epoch}, {"samples", binary_of(std::span(samples))}});
  }
  return json;
}

SavedTraining saved_of(const Json& json) {
  if (json.at("format") != checkpoint_format) {
    throw ReportError("this is not a checkpoint of a rank");
  }
  SavedTraining saved;
  saved.file = json.at("file");
  for (const Json& file : list_at(json, "files")) {
    saved.files.push_back(file);
  }
  saved.number = count_of(json.at("number"));
  saved.weights_only = json.at("weights_only");
  saved.bytes = Bytes(count_of(json.at("bytes")));
  saved.position = position_of(json.at("position"));
  saved.learning_rates = values_of_binary<double>(json.at("learning_rates"));
  saved.schedulers = saved_objects_of(json.at("schedulers"));
  saved.callbacks = saved_objects_of(json.at("callbacks"));
  for (const Json& tensor : list_at(json, "parameters")) {
    saved.parameters.push_back(saved_tensor_of(tensor));
  }
  for (const Json& values : list_at(json, "buffers")) {
    saved.buffers.push_back(saved_values_of(values));
  }
  for (const Json& trained : list_at(json, "trained")) {
    saved.trained.push_back(
        {count_of(trained.at("epoch")), values_of_binary<int64_t>(trained.at("samples"))});
  }
  return saved;
}

template <class Read>
auto read_sealed(std::span<const uint8_t> file, const Read& read) {
  const std::vector<uint8_t> content = content_of_report(file);
  check_cbor(content);
  try {
    return read(Json::from_cbor(content.begin(), content.end()));
  } catch (const Json::exception&) {
    throw ReportError("its content is not that of a checkpoint: run the ranks again");
  }
}

}  // namespace

std::vector<uint8_t> encode_checkpoint(const SavedTraining& saved) {
  return sealed_report(Json::to_cbor(json_of(saved)));
}

SavedTraining checkpoint_of(std::span<const uint8_t> file) { return read_sealed(file, saved_of); }

std::vector<uint8_t> encode_attempt(const Attempt& attempt) {
  Json json = {{"format", attempt_format},
               {"number", attempt.number},
               {"nodes", binary_of(std::span(attempt.nodes))},
               {"past_faults", attempt.past_faults},
               {"saved", attempt.saved ? json_of(*attempt.saved) : Json(nullptr)}};
  return sealed_report(Json::to_cbor(json));
}

Attempt attempt_of(std::span<const uint8_t> file) {
  return read_sealed(file, [](const Json& json) {
    if (json.at("format") != attempt_format) {
      throw ReportError("this does not describe an attempt");
    }
    Attempt attempt;
    attempt.number = whole_of<int32_t>(json.at("number"), 0);
    attempt.nodes = values_of_binary<int32_t>(json.at("nodes"));
    for (const Json& fault : list_at(json, "past_faults")) {
      attempt.past_faults.insert(whole_of<size_t>(fault));
    }
    if (!json.at("saved").is_null()) {
      attempt.saved = std::make_shared<const SavedTraining>(saved_of(json.at("saved")));
    }
    return attempt;
  });
}

}  // namespace lockstep
