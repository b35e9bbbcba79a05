#include "report/tree/json_object.h"

#include <nlohmann/json.hpp>

namespace lamina {

using nlohmann::ordered_json;

JsonObject::JsonObject() : value_(std::make_unique<ordered_json>(ordered_json::object())) {}

JsonObject::JsonObject(const char* unknown_key) : JsonObject() { (*value_)[unknown_key] = nullptr; }

JsonObject::JsonObject(const ordered_json& value) : value_(std::make_unique<ordered_json>(value)) {}

JsonObject::JsonObject(const JsonObject& other) : JsonObject(*other) {}

JsonObject::JsonObject(JsonObject&& other) noexcept = default;

JsonObject& JsonObject::operator=(const JsonObject& other) { return *this = JsonObject(other); }

JsonObject& JsonObject::operator=(JsonObject&& other) noexcept = default;

JsonObject::~JsonObject() = default;

}  // namespace lamina
