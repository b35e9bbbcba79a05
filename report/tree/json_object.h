// A JSON object that stands in a report as it was given. Apart from the report's header, since the JSON library takes
// longer to compile than most files that include that one; who looks inside includes <nlohmann/json.hpp>.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace lamina {

class JsonObject {
 public:
  JsonObject();                                  // {}
  explicit JsonObject(const char* unknown_key);  // {"unknown_key": null}
  JsonObject(const nlohmann::ordered_json& value);
  JsonObject(const JsonObject& other);
  JsonObject(JsonObject&& other) noexcept;  // leaves an object that can only be assigned to
  JsonObject& operator=(const JsonObject& other);
  JsonObject& operator=(JsonObject&& other) noexcept;
  ~JsonObject();

  nlohmann::ordered_json& operator*() { return *value_; }
  const nlohmann::ordered_json& operator*() const { return *value_; }
  nlohmann::ordered_json* operator->() { return value_.get(); }
  const nlohmann::ordered_json* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<nlohmann::ordered_json> value_;
};

}  // namespace lamina
