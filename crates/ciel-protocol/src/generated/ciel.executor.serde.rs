impl serde::Serialize for Ahead {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.before != 0 {
            len += 1;
        }
        if !self.awaited.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Ahead", len)?;
        if self.before != 0 {
            struct_ser.serialize_field("before", &self.before)?;
        }
        if !self.awaited.is_empty() {
            struct_ser.serialize_field("awaited", &self.awaited)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Ahead {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "before",
            "awaited",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Before,
            Awaited,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "before" => Ok(GeneratedField::Before),
                            "awaited" => Ok(GeneratedField::Awaited),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Ahead;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Ahead")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Ahead, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut before__ = None;
                let mut awaited__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Before => {
                            if before__.is_some() {
                                return Err(serde::de::Error::duplicate_field("before"));
                            }
                            before__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Awaited => {
                            if awaited__.is_some() {
                                return Err(serde::de::Error::duplicate_field("awaited"));
                            }
                            awaited__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Ahead {
                    before: before__.unwrap_or_default(),
                    awaited: awaited__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Ahead", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Answer {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.request != 0 {
            len += 1;
        }
        if self.result.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Answer", len)?;
        if self.request != 0 {
            struct_ser.serialize_field("request", &self.request)?;
        }
        if let Some(v) = self.result.as_ref() {
            match v {
                answer::Result::Reference(v) => {
                    struct_ser.serialize_field("reference", v)?;
                }
                answer::Result::Opened(v) => {
                    struct_ser.serialize_field("opened", v)?;
                }
                answer::Result::Observed(v) => {
                    struct_ser.serialize_field("observed", v)?;
                }
                answer::Result::Refused(v) => {
                    struct_ser.serialize_field("refused", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Answer {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "reference",
            "opened",
            "observed",
            "refused",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Reference,
            Opened,
            Observed,
            Refused,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "request" => Ok(GeneratedField::Request),
                            "reference" => Ok(GeneratedField::Reference),
                            "opened" => Ok(GeneratedField::Opened),
                            "observed" => Ok(GeneratedField::Observed),
                            "refused" => Ok(GeneratedField::Refused),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Answer;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Answer")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Answer, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut result__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Reference => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reference"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(answer::Result::Reference)
;
                        }
                        GeneratedField::Opened => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("opened"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(answer::Result::Opened)
;
                        }
                        GeneratedField::Observed => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observed"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(answer::Result::Observed)
;
                        }
                        GeneratedField::Refused => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("refused"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(answer::Result::Refused)
;
                        }
                    }
                }
                Ok(Answer {
                    request: request__.unwrap_or_default(),
                    result: result__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Answer", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Audit {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.effects.is_empty() {
            len += 1;
        }
        if !self.read.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Audit", len)?;
        if !self.effects.is_empty() {
            struct_ser.serialize_field("effects", &self.effects)?;
        }
        if !self.read.is_empty() {
            struct_ser.serialize_field("read", &self.read)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Audit {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "effects",
            "read",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Effects,
            Read,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "effects" => Ok(GeneratedField::Effects),
                            "read" => Ok(GeneratedField::Read),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Audit;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Audit")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Audit, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut effects__ = None;
                let mut read__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Effects => {
                            if effects__.is_some() {
                                return Err(serde::de::Error::duplicate_field("effects"));
                            }
                            effects__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Read => {
                            if read__.is_some() {
                                return Err(serde::de::Error::duplicate_field("read"));
                            }
                            read__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Audit {
                    effects: effects__.unwrap_or_default(),
                    read: read__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Audit", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Awaited {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.input != 0 {
            len += 1;
        }
        if self.tag != 0 {
            len += 1;
        }
        if self.output != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Awaited", len)?;
        if self.input != 0 {
            struct_ser.serialize_field("input", &self.input)?;
        }
        if self.tag != 0 {
            struct_ser.serialize_field("tag", &self.tag)?;
        }
        if self.output != 0 {
            struct_ser.serialize_field("output", &self.output)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Awaited {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "input",
            "tag",
            "output",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Input,
            Tag,
            Output,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "input" => Ok(GeneratedField::Input),
                            "tag" => Ok(GeneratedField::Tag),
                            "output" => Ok(GeneratedField::Output),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Awaited;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Awaited")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Awaited, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut input__ = None;
                let mut tag__ = None;
                let mut output__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Input => {
                            if input__.is_some() {
                                return Err(serde::de::Error::duplicate_field("input"));
                            }
                            input__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Tag => {
                            if tag__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tag"));
                            }
                            tag__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Output => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("output"));
                            }
                            output__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Awaited {
                    input: input__.unwrap_or_default(),
                    tag: tag__.unwrap_or_default(),
                    output: output__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Awaited", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for BlockOn {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.references.is_empty() {
            len += 1;
        }
        if self.wait != 0 {
            len += 1;
        }
        if self.timeout_ms.is_some() {
            len += 1;
        }
        if self.after != 0 {
            len += 1;
        }
        if self.part.is_some() {
            len += 1;
        }
        if !self.released.is_empty() {
            len += 1;
        }
        if self.continuation.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.BlockOn", len)?;
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        if self.wait != 0 {
            let v = Wait::try_from(self.wait)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.wait)))?;
            struct_ser.serialize_field("wait", &v)?;
        }
        if let Some(v) = self.timeout_ms.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("timeoutMs", ToString::to_string(&v).as_str())?;
        }
        if self.after != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("after", ToString::to_string(&self.after).as_str())?;
        }
        if let Some(v) = self.part.as_ref() {
            struct_ser.serialize_field("part", v)?;
        }
        if !self.released.is_empty() {
            struct_ser.serialize_field("released", &self.released)?;
        }
        if let Some(v) = self.continuation.as_ref() {
            match v {
                block_on::Continuation::Parked(v) => {
                    struct_ser.serialize_field("parked", v)?;
                }
                block_on::Continuation::Saved(v) => {
                    struct_ser.serialize_field("saved", v)?;
                }
                block_on::Continuation::Replay(v) => {
                    struct_ser.serialize_field("replay", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for BlockOn {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "references",
            "wait",
            "timeout_ms",
            "timeoutMs",
            "after",
            "part",
            "released",
            "parked",
            "saved",
            "replay",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            References,
            Wait,
            TimeoutMs,
            After,
            Part,
            Released,
            Parked,
            Saved,
            Replay,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "references" => Ok(GeneratedField::References),
                            "wait" => Ok(GeneratedField::Wait),
                            "timeoutMs" | "timeout_ms" => Ok(GeneratedField::TimeoutMs),
                            "after" => Ok(GeneratedField::After),
                            "part" => Ok(GeneratedField::Part),
                            "released" => Ok(GeneratedField::Released),
                            "parked" => Ok(GeneratedField::Parked),
                            "saved" => Ok(GeneratedField::Saved),
                            "replay" => Ok(GeneratedField::Replay),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = BlockOn;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.BlockOn")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<BlockOn, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut references__ = None;
                let mut wait__ = None;
                let mut timeout_ms__ = None;
                let mut after__ = None;
                let mut part__ = None;
                let mut released__ = None;
                let mut continuation__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Wait => {
                            if wait__.is_some() {
                                return Err(serde::de::Error::duplicate_field("wait"));
                            }
                            wait__ = Some(map_.next_value::<Wait>()? as i32);
                        }
                        GeneratedField::TimeoutMs => {
                            if timeout_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timeoutMs"));
                            }
                            timeout_ms__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::After => {
                            if after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("after"));
                            }
                            after__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Part => {
                            if part__.is_some() {
                                return Err(serde::de::Error::duplicate_field("part"));
                            }
                            part__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Released => {
                            if released__.is_some() {
                                return Err(serde::de::Error::duplicate_field("released"));
                            }
                            released__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Parked => {
                            if continuation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("parked"));
                            }
                            continuation__ = map_.next_value::<::std::option::Option<_>>()?.map(block_on::Continuation::Parked)
;
                        }
                        GeneratedField::Saved => {
                            if continuation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("saved"));
                            }
                            continuation__ = map_.next_value::<::std::option::Option<_>>()?.map(block_on::Continuation::Saved)
;
                        }
                        GeneratedField::Replay => {
                            if continuation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replay"));
                            }
                            continuation__ = map_.next_value::<::std::option::Option<_>>()?.map(block_on::Continuation::Replay)
;
                        }
                    }
                }
                Ok(BlockOn {
                    references: references__.unwrap_or_default(),
                    wait: wait__.unwrap_or_default(),
                    timeout_ms: timeout_ms__,
                    after: after__.unwrap_or_default(),
                    part: part__,
                    released: released__.unwrap_or_default(),
                    continuation: continuation__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.BlockOn", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Caches {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.held.is_empty() {
            len += 1;
        }
        if !self.dropped.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Caches", len)?;
        if !self.held.is_empty() {
            struct_ser.serialize_field("held", &self.held)?;
        }
        if !self.dropped.is_empty() {
            struct_ser.serialize_field("dropped", &self.dropped)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Caches {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "held",
            "dropped",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Held,
            Dropped,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "held" => Ok(GeneratedField::Held),
                            "dropped" => Ok(GeneratedField::Dropped),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Caches;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Caches")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Caches, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut held__ = None;
                let mut dropped__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Held => {
                            if held__.is_some() {
                                return Err(serde::de::Error::duplicate_field("held"));
                            }
                            held__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Dropped => {
                            if dropped__.is_some() {
                                return Err(serde::de::Error::duplicate_field("dropped"));
                            }
                            dropped__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Caches {
                    held: held__.unwrap_or_default(),
                    dropped: dropped__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Caches", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Calls {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.definition != 0 {
            len += 1;
        }
        if self.count != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Calls", len)?;
        if self.definition != 0 {
            struct_ser.serialize_field("definition", &self.definition)?;
        }
        if self.count != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("count", ToString::to_string(&self.count).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Calls {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "definition",
            "count",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Definition,
            Count,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "definition" => Ok(GeneratedField::Definition),
                            "count" => Ok(GeneratedField::Count),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Calls;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Calls")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Calls, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut definition__ = None;
                let mut count__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Definition => {
                            if definition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("definition"));
                            }
                            definition__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Count => {
                            if count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("count"));
                            }
                            count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Calls {
                    definition: definition__.unwrap_or_default(),
                    count: count__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Calls", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Cancel {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.grace_ms != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Cancel", len)?;
        if self.grace_ms != 0 {
            struct_ser.serialize_field("graceMs", &self.grace_ms)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Cancel {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "grace_ms",
            "graceMs",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            GraceMs,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "graceMs" | "grace_ms" => Ok(GeneratedField::GraceMs),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Cancel;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Cancel")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Cancel, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut grace_ms__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::GraceMs => {
                            if grace_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("graceMs"));
                            }
                            grace_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Cancel {
                    grace_ms: grace_ms__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Cancel", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Commit {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.request != 0 {
            len += 1;
        }
        if !self.form.is_empty() {
            len += 1;
        }
        if !self.references.is_empty() {
            len += 1;
        }
        if !self.r#type.is_empty() {
            len += 1;
        }
        if self.action != 0 {
            len += 1;
        }
        if self.part.is_some() {
            len += 1;
        }
        if self.handle != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Commit", len)?;
        if self.request != 0 {
            struct_ser.serialize_field("request", &self.request)?;
        }
        if !self.form.is_empty() {
            struct_ser.serialize_field("form", &self.form)?;
        }
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if self.action != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("action", ToString::to_string(&self.action).as_str())?;
        }
        if let Some(v) = self.part.as_ref() {
            struct_ser.serialize_field("part", v)?;
        }
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Commit {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "form",
            "references",
            "type",
            "action",
            "part",
            "handle",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Form,
            References,
            Type,
            Action,
            Part,
            Handle,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "request" => Ok(GeneratedField::Request),
                            "form" => Ok(GeneratedField::Form),
                            "references" => Ok(GeneratedField::References),
                            "type" => Ok(GeneratedField::Type),
                            "action" => Ok(GeneratedField::Action),
                            "part" => Ok(GeneratedField::Part),
                            "handle" => Ok(GeneratedField::Handle),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Commit;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Commit")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Commit, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut form__ = None;
                let mut references__ = None;
                let mut r#type__ = None;
                let mut action__ = None;
                let mut part__ = None;
                let mut handle__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Form => {
                            if form__.is_some() {
                                return Err(serde::de::Error::duplicate_field("form"));
                            }
                            form__ = Some(map_.next_value()?);
                        }
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Part => {
                            if part__.is_some() {
                                return Err(serde::de::Error::duplicate_field("part"));
                            }
                            part__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Commit {
                    request: request__.unwrap_or_default(),
                    form: form__.unwrap_or_default(),
                    references: references__.unwrap_or_default(),
                    r#type: r#type__.unwrap_or_default(),
                    action: action__.unwrap_or_default(),
                    part: part__,
                    handle: handle__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Commit", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Concrete {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.path.is_empty() {
            len += 1;
        }
        if self.length != 0 {
            len += 1;
        }
        if !self.form.is_empty() {
            len += 1;
        }
        if !self.references.is_empty() {
            len += 1;
        }
        if !self.r#type.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Concrete", len)?;
        if !self.path.is_empty() {
            struct_ser.serialize_field("path", &self.path)?;
        }
        if self.length != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("length", ToString::to_string(&self.length).as_str())?;
        }
        if !self.form.is_empty() {
            struct_ser.serialize_field("form", &self.form)?;
        }
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Concrete {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "path",
            "length",
            "form",
            "references",
            "type",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Path,
            Length,
            Form,
            References,
            Type,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "path" => Ok(GeneratedField::Path),
                            "length" => Ok(GeneratedField::Length),
                            "form" => Ok(GeneratedField::Form),
                            "references" => Ok(GeneratedField::References),
                            "type" => Ok(GeneratedField::Type),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Concrete;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Concrete")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Concrete, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut path__ = None;
                let mut length__ = None;
                let mut form__ = None;
                let mut references__ = None;
                let mut r#type__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Path => {
                            if path__.is_some() {
                                return Err(serde::de::Error::duplicate_field("path"));
                            }
                            path__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Length => {
                            if length__.is_some() {
                                return Err(serde::de::Error::duplicate_field("length"));
                            }
                            length__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Form => {
                            if form__.is_some() {
                                return Err(serde::de::Error::duplicate_field("form"));
                            }
                            form__ = Some(map_.next_value()?);
                        }
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Concrete {
                    path: path__.unwrap_or_default(),
                    length: length__.unwrap_or_default(),
                    form: form__.unwrap_or_default(),
                    references: references__.unwrap_or_default(),
                    r#type: r#type__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Concrete", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Construct {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.value.is_some() {
            len += 1;
        }
        if self.action != 0 {
            len += 1;
        }
        if self.part.is_some() {
            len += 1;
        }
        if self.handle != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Construct", len)?;
        if let Some(v) = self.value.as_ref() {
            struct_ser.serialize_field("value", v)?;
        }
        if self.action != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("action", ToString::to_string(&self.action).as_str())?;
        }
        if let Some(v) = self.part.as_ref() {
            struct_ser.serialize_field("part", v)?;
        }
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Construct {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "value",
            "action",
            "part",
            "handle",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Value,
            Action,
            Part,
            Handle,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "value" => Ok(GeneratedField::Value),
                            "action" => Ok(GeneratedField::Action),
                            "part" => Ok(GeneratedField::Part),
                            "handle" => Ok(GeneratedField::Handle),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Construct;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Construct")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Construct, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut value__ = None;
                let mut action__ = None;
                let mut part__ = None;
                let mut handle__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = map_.next_value()?;
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Part => {
                            if part__.is_some() {
                                return Err(serde::de::Error::duplicate_field("part"));
                            }
                            part__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Construct {
                    value: value__,
                    action: action__.unwrap_or_default(),
                    part: part__,
                    handle: handle__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Construct", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Data {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.data.is_empty() {
            len += 1;
        }
        if !self.form.is_empty() {
            len += 1;
        }
        if !self.references.is_empty() {
            len += 1;
        }
        if !self.r#type.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Data", len)?;
        if !self.data.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("data", pbjson::private::base64::encode(&self.data).as_str())?;
        }
        if !self.form.is_empty() {
            struct_ser.serialize_field("form", &self.form)?;
        }
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Data {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "data",
            "form",
            "references",
            "type",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Data,
            Form,
            References,
            Type,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "data" => Ok(GeneratedField::Data),
                            "form" => Ok(GeneratedField::Form),
                            "references" => Ok(GeneratedField::References),
                            "type" => Ok(GeneratedField::Type),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Data;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Data")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Data, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut data__ = None;
                let mut form__ = None;
                let mut references__ = None;
                let mut r#type__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Form => {
                            if form__.is_some() {
                                return Err(serde::de::Error::duplicate_field("form"));
                            }
                            form__ = Some(map_.next_value()?);
                        }
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Data {
                    data: data__.unwrap_or_default(),
                    form: form__.unwrap_or_default(),
                    references: references__.unwrap_or_default(),
                    r#type: r#type__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Data", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Define {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.id != 0 {
            len += 1;
        }
        if !self.executor.is_empty() {
            len += 1;
        }
        if !self.label.is_empty() {
            len += 1;
        }
        if !self.code.is_empty() {
            len += 1;
        }
        if !self.file.is_empty() {
            len += 1;
        }
        if self.outputs != 0 {
            len += 1;
        }
        if self.options.is_some() {
            len += 1;
        }
        if !self.streams.is_empty() {
            len += 1;
        }
        if self.stream_mode != 0 {
            len += 1;
        }
        if self.single_consumer {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Define", len)?;
        if self.id != 0 {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if !self.executor.is_empty() {
            struct_ser.serialize_field("executor", &self.executor)?;
        }
        if !self.label.is_empty() {
            struct_ser.serialize_field("label", &self.label)?;
        }
        if !self.code.is_empty() {
            struct_ser.serialize_field("code", &self.code)?;
        }
        if !self.file.is_empty() {
            struct_ser.serialize_field("file", &self.file)?;
        }
        if self.outputs != 0 {
            struct_ser.serialize_field("outputs", &self.outputs)?;
        }
        if let Some(v) = self.options.as_ref() {
            struct_ser.serialize_field("options", v)?;
        }
        if !self.streams.is_empty() {
            struct_ser.serialize_field("streams", &self.streams)?;
        }
        if self.stream_mode != 0 {
            let v = StreamMode::try_from(self.stream_mode)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.stream_mode)))?;
            struct_ser.serialize_field("streamMode", &v)?;
        }
        if self.single_consumer {
            struct_ser.serialize_field("singleConsumer", &self.single_consumer)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Define {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "executor",
            "label",
            "code",
            "file",
            "outputs",
            "options",
            "streams",
            "stream_mode",
            "streamMode",
            "single_consumer",
            "singleConsumer",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Executor,
            Label,
            Code,
            File,
            Outputs,
            Options,
            Streams,
            StreamMode,
            SingleConsumer,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "executor" => Ok(GeneratedField::Executor),
                            "label" => Ok(GeneratedField::Label),
                            "code" => Ok(GeneratedField::Code),
                            "file" => Ok(GeneratedField::File),
                            "outputs" => Ok(GeneratedField::Outputs),
                            "options" => Ok(GeneratedField::Options),
                            "streams" => Ok(GeneratedField::Streams),
                            "streamMode" | "stream_mode" => Ok(GeneratedField::StreamMode),
                            "singleConsumer" | "single_consumer" => Ok(GeneratedField::SingleConsumer),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Define;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Define")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Define, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut executor__ = None;
                let mut label__ = None;
                let mut code__ = None;
                let mut file__ = None;
                let mut outputs__ = None;
                let mut options__ = None;
                let mut streams__ = None;
                let mut stream_mode__ = None;
                let mut single_consumer__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Executor => {
                            if executor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("executor"));
                            }
                            executor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Label => {
                            if label__.is_some() {
                                return Err(serde::de::Error::duplicate_field("label"));
                            }
                            label__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Code => {
                            if code__.is_some() {
                                return Err(serde::de::Error::duplicate_field("code"));
                            }
                            code__ = Some(map_.next_value()?);
                        }
                        GeneratedField::File => {
                            if file__.is_some() {
                                return Err(serde::de::Error::duplicate_field("file"));
                            }
                            file__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Outputs => {
                            if outputs__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outputs"));
                            }
                            outputs__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Options => {
                            if options__.is_some() {
                                return Err(serde::de::Error::duplicate_field("options"));
                            }
                            options__ = map_.next_value()?;
                        }
                        GeneratedField::Streams => {
                            if streams__.is_some() {
                                return Err(serde::de::Error::duplicate_field("streams"));
                            }
                            streams__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::StreamMode => {
                            if stream_mode__.is_some() {
                                return Err(serde::de::Error::duplicate_field("streamMode"));
                            }
                            stream_mode__ = Some(map_.next_value::<StreamMode>()? as i32);
                        }
                        GeneratedField::SingleConsumer => {
                            if single_consumer__.is_some() {
                                return Err(serde::de::Error::duplicate_field("singleConsumer"));
                            }
                            single_consumer__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Define {
                    id: id__.unwrap_or_default(),
                    executor: executor__.unwrap_or_default(),
                    label: label__.unwrap_or_default(),
                    code: code__.unwrap_or_default(),
                    file: file__.unwrap_or_default(),
                    outputs: outputs__.unwrap_or_default(),
                    options: options__,
                    streams: streams__.unwrap_or_default(),
                    stream_mode: stream_mode__.unwrap_or_default(),
                    single_consumer: single_consumer__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Define", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Descriptor {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.definition != 0 {
            len += 1;
        }
        if !self.payload.is_empty() {
            len += 1;
        }
        if !self.inputs.is_empty() {
            len += 1;
        }
        if self.line != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Descriptor", len)?;
        if self.definition != 0 {
            struct_ser.serialize_field("definition", &self.definition)?;
        }
        if !self.payload.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("payload", pbjson::private::base64::encode(&self.payload).as_str())?;
        }
        if !self.inputs.is_empty() {
            struct_ser.serialize_field("inputs", &self.inputs)?;
        }
        if self.line != 0 {
            struct_ser.serialize_field("line", &self.line)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Descriptor {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "definition",
            "payload",
            "inputs",
            "line",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Definition,
            Payload,
            Inputs,
            Line,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "definition" => Ok(GeneratedField::Definition),
                            "payload" => Ok(GeneratedField::Payload),
                            "inputs" => Ok(GeneratedField::Inputs),
                            "line" => Ok(GeneratedField::Line),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Descriptor;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Descriptor")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Descriptor, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut definition__ = None;
                let mut payload__ = None;
                let mut inputs__ = None;
                let mut line__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Definition => {
                            if definition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("definition"));
                            }
                            definition__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Payload => {
                            if payload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("payload"));
                            }
                            payload__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Inputs => {
                            if inputs__.is_some() {
                                return Err(serde::de::Error::duplicate_field("inputs"));
                            }
                            inputs__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Line => {
                            if line__.is_some() {
                                return Err(serde::de::Error::duplicate_field("line"));
                            }
                            line__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Descriptor {
                    definition: definition__.unwrap_or_default(),
                    payload: payload__.unwrap_or_default(),
                    inputs: inputs__.unwrap_or_default(),
                    line: line__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Descriptor", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Drop {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("ciel.executor.Drop", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Drop {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Err(serde::de::Error::unknown_field(value, FIELDS))
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Drop;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Drop")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Drop, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(Drop {
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Drop", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EndedInPlace {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.calls.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.EndedInPlace", len)?;
        if !self.calls.is_empty() {
            struct_ser.serialize_field("calls", &self.calls)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EndedInPlace {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "calls",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Calls,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "calls" => Ok(GeneratedField::Calls),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EndedInPlace;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.EndedInPlace")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EndedInPlace, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut calls__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Calls => {
                            if calls__.is_some() {
                                return Err(serde::de::Error::duplicate_field("calls"));
                            }
                            calls__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(EndedInPlace {
                    calls: calls__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.EndedInPlace", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EngineMessage {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.tag != 0 {
            len += 1;
        }
        if self.kind.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.EngineMessage", len)?;
        if self.tag != 0 {
            struct_ser.serialize_field("tag", &self.tag)?;
        }
        if let Some(v) = self.kind.as_ref() {
            match v {
                engine_message::Kind::Hello(v) => {
                    struct_ser.serialize_field("hello", v)?;
                }
                engine_message::Kind::Refusal(v) => {
                    struct_ser.serialize_field("refusal", v)?;
                }
                engine_message::Kind::Start(v) => {
                    struct_ser.serialize_field("start", v)?;
                }
                engine_message::Kind::Resume(v) => {
                    struct_ser.serialize_field("resume", v)?;
                }
                engine_message::Kind::Answer(v) => {
                    struct_ser.serialize_field("answer", v)?;
                }
                engine_message::Kind::Cancel(v) => {
                    struct_ser.serialize_field("cancel", v)?;
                }
                engine_message::Kind::Drop(v) => {
                    struct_ser.serialize_field("drop", v)?;
                }
                engine_message::Kind::Shutdown(v) => {
                    struct_ser.serialize_field("shutdown", v)?;
                }
                engine_message::Kind::Ping(v) => {
                    struct_ser.serialize_field("ping", v)?;
                }
                engine_message::Kind::Define(v) => {
                    struct_ser.serialize_field("define", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EngineMessage {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "tag",
            "hello",
            "refusal",
            "start",
            "resume",
            "answer",
            "cancel",
            "drop",
            "shutdown",
            "ping",
            "define",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Tag,
            Hello,
            Refusal,
            Start,
            Resume,
            Answer,
            Cancel,
            Drop,
            Shutdown,
            Ping,
            Define,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "tag" => Ok(GeneratedField::Tag),
                            "hello" => Ok(GeneratedField::Hello),
                            "refusal" => Ok(GeneratedField::Refusal),
                            "start" => Ok(GeneratedField::Start),
                            "resume" => Ok(GeneratedField::Resume),
                            "answer" => Ok(GeneratedField::Answer),
                            "cancel" => Ok(GeneratedField::Cancel),
                            "drop" => Ok(GeneratedField::Drop),
                            "shutdown" => Ok(GeneratedField::Shutdown),
                            "ping" => Ok(GeneratedField::Ping),
                            "define" => Ok(GeneratedField::Define),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EngineMessage;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.EngineMessage")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EngineMessage, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut tag__ = None;
                let mut kind__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Tag => {
                            if tag__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tag"));
                            }
                            tag__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Hello => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("hello"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Hello)
;
                        }
                        GeneratedField::Refusal => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("refusal"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Refusal)
;
                        }
                        GeneratedField::Start => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Start)
;
                        }
                        GeneratedField::Resume => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resume"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Resume)
;
                        }
                        GeneratedField::Answer => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("answer"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Answer)
;
                        }
                        GeneratedField::Cancel => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cancel"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Cancel)
;
                        }
                        GeneratedField::Drop => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("drop"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Drop)
;
                        }
                        GeneratedField::Shutdown => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("shutdown"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Shutdown)
;
                        }
                        GeneratedField::Ping => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ping"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Ping)
;
                        }
                        GeneratedField::Define => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("define"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(engine_message::Kind::Define)
;
                        }
                    }
                }
                Ok(EngineMessage {
                    tag: tag__.unwrap_or_default(),
                    kind: kind__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.EngineMessage", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Error {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.failure.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Error", len)?;
        if let Some(v) = self.failure.as_ref() {
            struct_ser.serialize_field("failure", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Error {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "failure",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Failure,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "failure" => Ok(GeneratedField::Failure),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Error;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Error")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Error, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut failure__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Failure => {
                            if failure__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failure"));
                            }
                            failure__ = map_.next_value()?;
                        }
                    }
                }
                Ok(Error {
                    failure: failure__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Error", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Exit {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.outputs.is_empty() {
            len += 1;
        }
        if self.keep != 0 {
            len += 1;
        }
        if self.next != 0 {
            len += 1;
        }
        if self.audit.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Exit", len)?;
        if !self.outputs.is_empty() {
            struct_ser.serialize_field("outputs", &self.outputs)?;
        }
        if self.keep != 0 {
            let v = Keep::try_from(self.keep)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.keep)))?;
            struct_ser.serialize_field("keep", &v)?;
        }
        if self.next != 0 {
            struct_ser.serialize_field("next", &self.next)?;
        }
        if let Some(v) = self.audit.as_ref() {
            struct_ser.serialize_field("audit", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Exit {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "outputs",
            "keep",
            "next",
            "audit",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Outputs,
            Keep,
            Next,
            Audit,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "outputs" => Ok(GeneratedField::Outputs),
                            "keep" => Ok(GeneratedField::Keep),
                            "next" => Ok(GeneratedField::Next),
                            "audit" => Ok(GeneratedField::Audit),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Exit;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Exit")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Exit, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut outputs__ = None;
                let mut keep__ = None;
                let mut next__ = None;
                let mut audit__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Outputs => {
                            if outputs__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outputs"));
                            }
                            outputs__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Keep => {
                            if keep__.is_some() {
                                return Err(serde::de::Error::duplicate_field("keep"));
                            }
                            keep__ = Some(map_.next_value::<Keep>()? as i32);
                        }
                        GeneratedField::Next => {
                            if next__.is_some() {
                                return Err(serde::de::Error::duplicate_field("next"));
                            }
                            next__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Audit => {
                            if audit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("audit"));
                            }
                            audit__ = map_.next_value()?;
                        }
                    }
                }
                Ok(Exit {
                    outputs: outputs__.unwrap_or_default(),
                    keep: keep__.unwrap_or_default(),
                    next: next__.unwrap_or_default(),
                    audit: audit__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Exit", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Failure {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.kind != 0 {
            len += 1;
        }
        if !self.language.is_empty() {
            len += 1;
        }
        if !self.type_name.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.traceback.is_empty() {
            len += 1;
        }
        if !self.hint.is_empty() {
            len += 1;
        }
        if self.retryable.is_some() {
            len += 1;
        }
        if self.exception.is_some() {
            len += 1;
        }
        if !self.task.is_empty() {
            len += 1;
        }
        if !self.excerpt.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Failure", len)?;
        if self.kind != 0 {
            let v = FailureKind::try_from(self.kind)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.kind)))?;
            struct_ser.serialize_field("kind", &v)?;
        }
        if !self.language.is_empty() {
            struct_ser.serialize_field("language", &self.language)?;
        }
        if !self.type_name.is_empty() {
            struct_ser.serialize_field("typeName", &self.type_name)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.traceback.is_empty() {
            struct_ser.serialize_field("traceback", &self.traceback)?;
        }
        if !self.hint.is_empty() {
            struct_ser.serialize_field("hint", &self.hint)?;
        }
        if let Some(v) = self.retryable.as_ref() {
            struct_ser.serialize_field("retryable", v)?;
        }
        if let Some(v) = self.exception.as_ref() {
            struct_ser.serialize_field("exception", v)?;
        }
        if !self.task.is_empty() {
            struct_ser.serialize_field("task", &self.task)?;
        }
        if !self.excerpt.is_empty() {
            struct_ser.serialize_field("excerpt", &self.excerpt)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Failure {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "language",
            "type_name",
            "typeName",
            "message",
            "traceback",
            "hint",
            "retryable",
            "exception",
            "task",
            "excerpt",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Language,
            TypeName,
            Message,
            Traceback,
            Hint,
            Retryable,
            Exception,
            Task,
            Excerpt,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "language" => Ok(GeneratedField::Language),
                            "typeName" | "type_name" => Ok(GeneratedField::TypeName),
                            "message" => Ok(GeneratedField::Message),
                            "traceback" => Ok(GeneratedField::Traceback),
                            "hint" => Ok(GeneratedField::Hint),
                            "retryable" => Ok(GeneratedField::Retryable),
                            "exception" => Ok(GeneratedField::Exception),
                            "task" => Ok(GeneratedField::Task),
                            "excerpt" => Ok(GeneratedField::Excerpt),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Failure;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Failure")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Failure, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut language__ = None;
                let mut type_name__ = None;
                let mut message__ = None;
                let mut traceback__ = None;
                let mut hint__ = None;
                let mut retryable__ = None;
                let mut exception__ = None;
                let mut task__ = None;
                let mut excerpt__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value::<FailureKind>()? as i32);
                        }
                        GeneratedField::Language => {
                            if language__.is_some() {
                                return Err(serde::de::Error::duplicate_field("language"));
                            }
                            language__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TypeName => {
                            if type_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("typeName"));
                            }
                            type_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Traceback => {
                            if traceback__.is_some() {
                                return Err(serde::de::Error::duplicate_field("traceback"));
                            }
                            traceback__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Hint => {
                            if hint__.is_some() {
                                return Err(serde::de::Error::duplicate_field("hint"));
                            }
                            hint__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Retryable => {
                            if retryable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("retryable"));
                            }
                            retryable__ = map_.next_value()?;
                        }
                        GeneratedField::Exception => {
                            if exception__.is_some() {
                                return Err(serde::de::Error::duplicate_field("exception"));
                            }
                            exception__ = map_.next_value()?;
                        }
                        GeneratedField::Task => {
                            if task__.is_some() {
                                return Err(serde::de::Error::duplicate_field("task"));
                            }
                            task__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Excerpt => {
                            if excerpt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("excerpt"));
                            }
                            excerpt__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Failure {
                    kind: kind__.unwrap_or_default(),
                    language: language__.unwrap_or_default(),
                    type_name: type_name__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    traceback: traceback__.unwrap_or_default(),
                    hint: hint__.unwrap_or_default(),
                    retryable: retryable__,
                    exception: exception__,
                    task: task__.unwrap_or_default(),
                    excerpt: excerpt__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Failure", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for FailureKind {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "FAILURE_KIND_UNSPECIFIED",
            Self::TaskError => "FAILURE_KIND_TASK_ERROR",
            Self::WorkerLost => "FAILURE_KIND_WORKER_LOST",
            Self::Cancelled => "FAILURE_KIND_CANCELLED",
            Self::Timeout => "FAILURE_KIND_TIMEOUT",
            Self::OutOfMemory => "FAILURE_KIND_OUT_OF_MEMORY",
            Self::NotSerializable => "FAILURE_KIND_NOT_SERIALIZABLE",
            Self::NonDeterministic => "FAILURE_KIND_NON_DETERMINISTIC",
            Self::ObjectLost => "FAILURE_KIND_OBJECT_LOST",
            Self::DiskFull => "FAILURE_KIND_DISK_FULL",
            Self::Refused => "FAILURE_KIND_REFUSED",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for FailureKind {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "FAILURE_KIND_UNSPECIFIED",
            "FAILURE_KIND_TASK_ERROR",
            "FAILURE_KIND_WORKER_LOST",
            "FAILURE_KIND_CANCELLED",
            "FAILURE_KIND_TIMEOUT",
            "FAILURE_KIND_OUT_OF_MEMORY",
            "FAILURE_KIND_NOT_SERIALIZABLE",
            "FAILURE_KIND_NON_DETERMINISTIC",
            "FAILURE_KIND_OBJECT_LOST",
            "FAILURE_KIND_DISK_FULL",
            "FAILURE_KIND_REFUSED",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = FailureKind;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "FAILURE_KIND_UNSPECIFIED" => Ok(FailureKind::Unspecified),
                    "FAILURE_KIND_TASK_ERROR" => Ok(FailureKind::TaskError),
                    "FAILURE_KIND_WORKER_LOST" => Ok(FailureKind::WorkerLost),
                    "FAILURE_KIND_CANCELLED" => Ok(FailureKind::Cancelled),
                    "FAILURE_KIND_TIMEOUT" => Ok(FailureKind::Timeout),
                    "FAILURE_KIND_OUT_OF_MEMORY" => Ok(FailureKind::OutOfMemory),
                    "FAILURE_KIND_NOT_SERIALIZABLE" => Ok(FailureKind::NotSerializable),
                    "FAILURE_KIND_NON_DETERMINISTIC" => Ok(FailureKind::NonDeterministic),
                    "FAILURE_KIND_OBJECT_LOST" => Ok(FailureKind::ObjectLost),
                    "FAILURE_KIND_DISK_FULL" => Ok(FailureKind::DiskFull),
                    "FAILURE_KIND_REFUSED" => Ok(FailureKind::Refused),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for FileRead {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.path.is_empty() {
            len += 1;
        }
        if self.length != 0 {
            len += 1;
        }
        if !self.digest.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.FileRead", len)?;
        if !self.path.is_empty() {
            struct_ser.serialize_field("path", &self.path)?;
        }
        if self.length != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("length", ToString::to_string(&self.length).as_str())?;
        }
        if !self.digest.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("digest", pbjson::private::base64::encode(&self.digest).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for FileRead {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "path",
            "length",
            "digest",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Path,
            Length,
            Digest,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "path" => Ok(GeneratedField::Path),
                            "length" => Ok(GeneratedField::Length),
                            "digest" => Ok(GeneratedField::Digest),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = FileRead;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.FileRead")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<FileRead, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut path__ = None;
                let mut length__ = None;
                let mut digest__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Path => {
                            if path__.is_some() {
                                return Err(serde::de::Error::duplicate_field("path"));
                            }
                            path__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Length => {
                            if length__.is_some() {
                                return Err(serde::de::Error::duplicate_field("length"));
                            }
                            length__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Digest => {
                            if digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("digest"));
                            }
                            digest__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(FileRead {
                    path: path__.unwrap_or_default(),
                    length: length__.unwrap_or_default(),
                    digest: digest__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.FileRead", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Frame {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.file.is_empty() {
            len += 1;
        }
        if self.line != 0 {
            len += 1;
        }
        if self.column != 0 {
            len += 1;
        }
        if !self.function.is_empty() {
            len += 1;
        }
        if !self.source.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Frame", len)?;
        if !self.file.is_empty() {
            struct_ser.serialize_field("file", &self.file)?;
        }
        if self.line != 0 {
            struct_ser.serialize_field("line", &self.line)?;
        }
        if self.column != 0 {
            struct_ser.serialize_field("column", &self.column)?;
        }
        if !self.function.is_empty() {
            struct_ser.serialize_field("function", &self.function)?;
        }
        if !self.source.is_empty() {
            struct_ser.serialize_field("source", &self.source)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Frame {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "file",
            "line",
            "column",
            "function",
            "source",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            File,
            Line,
            Column,
            Function,
            Source,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "file" => Ok(GeneratedField::File),
                            "line" => Ok(GeneratedField::Line),
                            "column" => Ok(GeneratedField::Column),
                            "function" => Ok(GeneratedField::Function),
                            "source" => Ok(GeneratedField::Source),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Frame;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Frame")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Frame, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut file__ = None;
                let mut line__ = None;
                let mut column__ = None;
                let mut function__ = None;
                let mut source__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::File => {
                            if file__.is_some() {
                                return Err(serde::de::Error::duplicate_field("file"));
                            }
                            file__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Line => {
                            if line__.is_some() {
                                return Err(serde::de::Error::duplicate_field("line"));
                            }
                            line__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Column => {
                            if column__.is_some() {
                                return Err(serde::de::Error::duplicate_field("column"));
                            }
                            column__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Function => {
                            if function__.is_some() {
                                return Err(serde::de::Error::duplicate_field("function"));
                            }
                            function__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Source => {
                            if source__.is_some() {
                                return Err(serde::de::Error::duplicate_field("source"));
                            }
                            source__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Frame {
                    file: file__.unwrap_or_default(),
                    line: line__.unwrap_or_default(),
                    column: column__.unwrap_or_default(),
                    function: function__.unwrap_or_default(),
                    source: source__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Frame", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for FunctionCode {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if self.site.is_some() {
            len += 1;
        }
        if !self.digest.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.FunctionCode", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if let Some(v) = self.site.as_ref() {
            struct_ser.serialize_field("site", v)?;
        }
        if !self.digest.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("digest", pbjson::private::base64::encode(&self.digest).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for FunctionCode {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "site",
            "digest",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Site,
            Digest,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "site" => Ok(GeneratedField::Site),
                            "digest" => Ok(GeneratedField::Digest),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = FunctionCode;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.FunctionCode")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<FunctionCode, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut site__ = None;
                let mut digest__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Site => {
                            if site__.is_some() {
                                return Err(serde::de::Error::duplicate_field("site"));
                            }
                            site__ = map_.next_value()?;
                        }
                        GeneratedField::Digest => {
                            if digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("digest"));
                            }
                            digest__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(FunctionCode {
                    name: name__.unwrap_or_default(),
                    site: site__,
                    digest: digest__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.FunctionCode", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Future {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("ciel.executor.Future", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Future {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Err(serde::de::Error::unknown_field(value, FIELDS))
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Future;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Future")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Future, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(Future {
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Future", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for GiveBack {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.tags.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.GiveBack", len)?;
        if !self.tags.is_empty() {
            struct_ser.serialize_field("tags", &self.tags)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for GiveBack {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "tags",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Tags,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "tags" => Ok(GeneratedField::Tags),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = GiveBack;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.GiveBack")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<GiveBack, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut tags__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Tags => {
                            if tags__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tags"));
                            }
                            tags__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                    }
                }
                Ok(GiveBack {
                    tags: tags__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.GiveBack", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Hello {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.protocol != 0 {
            len += 1;
        }
        if !self.build.is_empty() {
            len += 1;
        }
        if !self.runtime.is_empty() {
            len += 1;
        }
        if !self.executor.is_empty() {
            len += 1;
        }
        if !self.features.is_empty() {
            len += 1;
        }
        if self.pool.is_some() {
            len += 1;
        }
        if !self.code.is_empty() {
            len += 1;
        }
        if !self.folder.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Hello", len)?;
        if self.protocol != 0 {
            struct_ser.serialize_field("protocol", &self.protocol)?;
        }
        if !self.build.is_empty() {
            struct_ser.serialize_field("build", &self.build)?;
        }
        if !self.runtime.is_empty() {
            struct_ser.serialize_field("runtime", &self.runtime)?;
        }
        if !self.executor.is_empty() {
            struct_ser.serialize_field("executor", &self.executor)?;
        }
        if !self.features.is_empty() {
            struct_ser.serialize_field("features", &self.features)?;
        }
        if let Some(v) = self.pool.as_ref() {
            struct_ser.serialize_field("pool", v)?;
        }
        if !self.code.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("code", pbjson::private::base64::encode(&self.code).as_str())?;
        }
        if !self.folder.is_empty() {
            struct_ser.serialize_field("folder", &self.folder)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Hello {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "protocol",
            "build",
            "runtime",
            "executor",
            "features",
            "pool",
            "code",
            "folder",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Protocol,
            Build,
            Runtime,
            Executor,
            Features,
            Pool,
            Code,
            Folder,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "protocol" => Ok(GeneratedField::Protocol),
                            "build" => Ok(GeneratedField::Build),
                            "runtime" => Ok(GeneratedField::Runtime),
                            "executor" => Ok(GeneratedField::Executor),
                            "features" => Ok(GeneratedField::Features),
                            "pool" => Ok(GeneratedField::Pool),
                            "code" => Ok(GeneratedField::Code),
                            "folder" => Ok(GeneratedField::Folder),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Hello;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Hello")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Hello, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut protocol__ = None;
                let mut build__ = None;
                let mut runtime__ = None;
                let mut executor__ = None;
                let mut features__ = None;
                let mut pool__ = None;
                let mut code__ = None;
                let mut folder__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Protocol => {
                            if protocol__.is_some() {
                                return Err(serde::de::Error::duplicate_field("protocol"));
                            }
                            protocol__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Build => {
                            if build__.is_some() {
                                return Err(serde::de::Error::duplicate_field("build"));
                            }
                            build__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Runtime => {
                            if runtime__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runtime"));
                            }
                            runtime__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Executor => {
                            if executor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("executor"));
                            }
                            executor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Features => {
                            if features__.is_some() {
                                return Err(serde::de::Error::duplicate_field("features"));
                            }
                            features__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Pool => {
                            if pool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pool"));
                            }
                            pool__ = map_.next_value()?;
                        }
                        GeneratedField::Code => {
                            if code__.is_some() {
                                return Err(serde::de::Error::duplicate_field("code"));
                            }
                            code__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Folder => {
                            if folder__.is_some() {
                                return Err(serde::de::Error::duplicate_field("folder"));
                            }
                            folder__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Hello {
                    protocol: protocol__.unwrap_or_default(),
                    build: build__.unwrap_or_default(),
                    runtime: runtime__.unwrap_or_default(),
                    executor: executor__.unwrap_or_default(),
                    features: features__.unwrap_or_default(),
                    pool: pool__,
                    code: code__.unwrap_or_default(),
                    folder: folder__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Hello", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Input {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.handle != 0 {
            len += 1;
        }
        if self.mode != 0 {
            len += 1;
        }
        if self.wish.is_some() {
            len += 1;
        }
        if self.locality_percent.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Input", len)?;
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        if self.mode != 0 {
            let v = InputMode::try_from(self.mode)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.mode)))?;
            struct_ser.serialize_field("mode", &v)?;
        }
        if let Some(v) = self.wish.as_ref() {
            struct_ser.serialize_field("wish", v)?;
        }
        if let Some(v) = self.locality_percent.as_ref() {
            struct_ser.serialize_field("localityPercent", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Input {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "handle",
            "mode",
            "wish",
            "locality_percent",
            "localityPercent",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Handle,
            Mode,
            Wish,
            LocalityPercent,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "handle" => Ok(GeneratedField::Handle),
                            "mode" => Ok(GeneratedField::Mode),
                            "wish" => Ok(GeneratedField::Wish),
                            "localityPercent" | "locality_percent" => Ok(GeneratedField::LocalityPercent),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Input;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Input")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Input, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut handle__ = None;
                let mut mode__ = None;
                let mut wish__ = None;
                let mut locality_percent__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Mode => {
                            if mode__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mode"));
                            }
                            mode__ = Some(map_.next_value::<InputMode>()? as i32);
                        }
                        GeneratedField::Wish => {
                            if wish__.is_some() {
                                return Err(serde::de::Error::duplicate_field("wish"));
                            }
                            wish__ = map_.next_value()?;
                        }
                        GeneratedField::LocalityPercent => {
                            if locality_percent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("localityPercent"));
                            }
                            locality_percent__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                    }
                }
                Ok(Input {
                    handle: handle__.unwrap_or_default(),
                    mode: mode__.unwrap_or_default(),
                    wish: wish__,
                    locality_percent: locality_percent__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Input", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for InputMode {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Value => "INPUT_MODE_VALUE",
            Self::Reference => "INPUT_MODE_REFERENCE",
            Self::Stream => "INPUT_MODE_STREAM",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for InputMode {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "INPUT_MODE_VALUE",
            "INPUT_MODE_REFERENCE",
            "INPUT_MODE_STREAM",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = InputMode;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "INPUT_MODE_VALUE" => Ok(InputMode::Value),
                    "INPUT_MODE_REFERENCE" => Ok(InputMode::Reference),
                    "INPUT_MODE_STREAM" => Ok(InputMode::Stream),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Keep {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "KEEP_UNSPECIFIED",
            Self::Process => "KEEP_PROCESS",
            Self::End => "KEEP_END",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Keep {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "KEEP_UNSPECIFIED",
            "KEEP_PROCESS",
            "KEEP_END",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Keep;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "KEEP_UNSPECIFIED" => Ok(Keep::Unspecified),
                    "KEEP_PROCESS" => Ok(Keep::Process),
                    "KEEP_END" => Ok(Keep::End),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Level {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Info => "LEVEL_INFO",
            Self::Debug => "LEVEL_DEBUG",
            Self::Warning => "LEVEL_WARNING",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Level {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "LEVEL_INFO",
            "LEVEL_DEBUG",
            "LEVEL_WARNING",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Level;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "LEVEL_INFO" => Ok(Level::Info),
                    "LEVEL_DEBUG" => Ok(Level::Debug),
                    "LEVEL_WARNING" => Ok(Level::Warning),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Log {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.level != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Log", len)?;
        if self.level != 0 {
            let v = Level::try_from(self.level)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.level)))?;
            struct_ser.serialize_field("level", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Log {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "level",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Level,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "level" => Ok(GeneratedField::Level),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Log;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Log")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Log, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut level__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Level => {
                            if level__.is_some() {
                                return Err(serde::de::Error::duplicate_field("level"));
                            }
                            level__ = Some(map_.next_value::<Level>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Log {
                    level: level__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Log", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Observation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.value.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Observation", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.value.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("value", pbjson::private::base64::encode(&self.value).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Observation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "value",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Value,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "value" => Ok(GeneratedField::Value),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Observation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Observation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Observation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut value__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Observation {
                    kind: kind__.unwrap_or_default(),
                    value: value__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Observation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Observe {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.request != 0 {
            len += 1;
        }
        if !self.kind.is_empty() {
            len += 1;
        }
        if self.value.is_some() {
            len += 1;
        }
        if !self.references.is_empty() {
            len += 1;
        }
        if self.action != 0 {
            len += 1;
        }
        if self.part.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Observe", len)?;
        if self.request != 0 {
            struct_ser.serialize_field("request", &self.request)?;
        }
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if let Some(v) = self.value.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("value", pbjson::private::base64::encode(&v).as_str())?;
        }
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        if self.action != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("action", ToString::to_string(&self.action).as_str())?;
        }
        if let Some(v) = self.part.as_ref() {
            struct_ser.serialize_field("part", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Observe {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "kind",
            "value",
            "references",
            "action",
            "part",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Kind,
            Value,
            References,
            Action,
            Part,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "request" => Ok(GeneratedField::Request),
                            "kind" => Ok(GeneratedField::Kind),
                            "value" => Ok(GeneratedField::Value),
                            "references" => Ok(GeneratedField::References),
                            "action" => Ok(GeneratedField::Action),
                            "part" => Ok(GeneratedField::Part),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Observe;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Observe")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Observe, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut kind__ = None;
                let mut value__ = None;
                let mut references__ = None;
                let mut action__ = None;
                let mut part__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::BytesDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Part => {
                            if part__.is_some() {
                                return Err(serde::de::Error::duplicate_field("part"));
                            }
                            part__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                    }
                }
                Ok(Observe {
                    request: request__.unwrap_or_default(),
                    kind: kind__.unwrap_or_default(),
                    value: value__,
                    references: references__.unwrap_or_default(),
                    action: action__.unwrap_or_default(),
                    part: part__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Observe", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Observed {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.value.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Observed", len)?;
        if !self.value.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("value", pbjson::private::base64::encode(&self.value).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Observed {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "value",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Value,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "value" => Ok(GeneratedField::Value),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Observed;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Observed")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Observed, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut value__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Observed {
                    value: value__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Observed", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OpenConstruct {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.request != 0 {
            len += 1;
        }
        if self.length != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.OpenConstruct", len)?;
        if self.request != 0 {
            struct_ser.serialize_field("request", &self.request)?;
        }
        if self.length != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("length", ToString::to_string(&self.length).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OpenConstruct {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "length",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Length,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "request" => Ok(GeneratedField::Request),
                            "length" => Ok(GeneratedField::Length),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OpenConstruct;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.OpenConstruct")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OpenConstruct, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut length__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Length => {
                            if length__.is_some() {
                                return Err(serde::de::Error::duplicate_field("length"));
                            }
                            length__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(OpenConstruct {
                    request: request__.unwrap_or_default(),
                    length: length__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.OpenConstruct", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OpenOutput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.request != 0 {
            len += 1;
        }
        if self.output != 0 {
            len += 1;
        }
        if !self.form.is_empty() {
            len += 1;
        }
        if self.length != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.OpenOutput", len)?;
        if self.request != 0 {
            struct_ser.serialize_field("request", &self.request)?;
        }
        if self.output != 0 {
            struct_ser.serialize_field("output", &self.output)?;
        }
        if !self.form.is_empty() {
            struct_ser.serialize_field("form", &self.form)?;
        }
        if self.length != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("length", ToString::to_string(&self.length).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OpenOutput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "output",
            "form",
            "length",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Output,
            Form,
            Length,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "request" => Ok(GeneratedField::Request),
                            "output" => Ok(GeneratedField::Output),
                            "form" => Ok(GeneratedField::Form),
                            "length" => Ok(GeneratedField::Length),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OpenOutput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.OpenOutput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OpenOutput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut output__ = None;
                let mut form__ = None;
                let mut length__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Output => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("output"));
                            }
                            output__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Form => {
                            if form__.is_some() {
                                return Err(serde::de::Error::duplicate_field("form"));
                            }
                            form__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Length => {
                            if length__.is_some() {
                                return Err(serde::de::Error::duplicate_field("length"));
                            }
                            length__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(OpenOutput {
                    request: request__.unwrap_or_default(),
                    output: output__.unwrap_or_default(),
                    form: form__.unwrap_or_default(),
                    length: length__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.OpenOutput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OpenReference {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.request != 0 {
            len += 1;
        }
        if self.handle != 0 {
            len += 1;
        }
        if self.must_block {
            len += 1;
        }
        if self.as_stream {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.OpenReference", len)?;
        if self.request != 0 {
            struct_ser.serialize_field("request", &self.request)?;
        }
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        if self.must_block {
            struct_ser.serialize_field("mustBlock", &self.must_block)?;
        }
        if self.as_stream {
            struct_ser.serialize_field("asStream", &self.as_stream)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OpenReference {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "handle",
            "must_block",
            "mustBlock",
            "as_stream",
            "asStream",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Handle,
            MustBlock,
            AsStream,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "request" => Ok(GeneratedField::Request),
                            "handle" => Ok(GeneratedField::Handle),
                            "mustBlock" | "must_block" => Ok(GeneratedField::MustBlock),
                            "asStream" | "as_stream" => Ok(GeneratedField::AsStream),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OpenReference;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.OpenReference")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OpenReference, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut handle__ = None;
                let mut must_block__ = None;
                let mut as_stream__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MustBlock => {
                            if must_block__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mustBlock"));
                            }
                            must_block__ = Some(map_.next_value()?);
                        }
                        GeneratedField::AsStream => {
                            if as_stream__.is_some() {
                                return Err(serde::de::Error::duplicate_field("asStream"));
                            }
                            as_stream__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(OpenReference {
                    request: request__.unwrap_or_default(),
                    handle: handle__.unwrap_or_default(),
                    must_block: must_block__.unwrap_or_default(),
                    as_stream: as_stream__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.OpenReference", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OpenShared {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.request != 0 {
            len += 1;
        }
        if self.length != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.OpenShared", len)?;
        if self.request != 0 {
            struct_ser.serialize_field("request", &self.request)?;
        }
        if self.length != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("length", ToString::to_string(&self.length).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OpenShared {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "length",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Length,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "request" => Ok(GeneratedField::Request),
                            "length" => Ok(GeneratedField::Length),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OpenShared;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.OpenShared")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OpenShared, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut length__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Length => {
                            if length__.is_some() {
                                return Err(serde::de::Error::duplicate_field("length"));
                            }
                            length__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(OpenShared {
                    request: request__.unwrap_or_default(),
                    length: length__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.OpenShared", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Opened {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.path.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Opened", len)?;
        if !self.path.is_empty() {
            struct_ser.serialize_field("path", &self.path)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Opened {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "path",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Path,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "path" => Ok(GeneratedField::Path),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Opened;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Opened")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Opened, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut path__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Path => {
                            if path__.is_some() {
                                return Err(serde::de::Error::duplicate_field("path"));
                            }
                            path__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Opened {
                    path: path__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Opened", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Options {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.resources.is_empty() {
            len += 1;
        }
        if self.retries.is_some() {
            len += 1;
        }
        if self.timeout_ms.is_some() {
            len += 1;
        }
        if self.lazy {
            len += 1;
        }
        if self.purity != 0 {
            len += 1;
        }
        if self.live {
            len += 1;
        }
        if self.keep != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Options", len)?;
        if !self.resources.is_empty() {
            let v: std::collections::HashMap<_, _> = self.resources.iter()
                .map(|(k, v)| (k, v.to_string())).collect();
            struct_ser.serialize_field("resources", &v)?;
        }
        if let Some(v) = self.retries.as_ref() {
            struct_ser.serialize_field("retries", v)?;
        }
        if let Some(v) = self.timeout_ms.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("timeoutMs", ToString::to_string(&v).as_str())?;
        }
        if self.lazy {
            struct_ser.serialize_field("lazy", &self.lazy)?;
        }
        if self.purity != 0 {
            let v = Purity::try_from(self.purity)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.purity)))?;
            struct_ser.serialize_field("purity", &v)?;
        }
        if self.live {
            struct_ser.serialize_field("live", &self.live)?;
        }
        if self.keep != 0 {
            let v = Retention::try_from(self.keep)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.keep)))?;
            struct_ser.serialize_field("keep", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Options {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "resources",
            "retries",
            "timeout_ms",
            "timeoutMs",
            "lazy",
            "purity",
            "live",
            "keep",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Resources,
            Retries,
            TimeoutMs,
            Lazy,
            Purity,
            Live,
            Keep,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "resources" => Ok(GeneratedField::Resources),
                            "retries" => Ok(GeneratedField::Retries),
                            "timeoutMs" | "timeout_ms" => Ok(GeneratedField::TimeoutMs),
                            "lazy" => Ok(GeneratedField::Lazy),
                            "purity" => Ok(GeneratedField::Purity),
                            "live" => Ok(GeneratedField::Live),
                            "keep" => Ok(GeneratedField::Keep),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Options;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Options")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Options, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut resources__ = None;
                let mut retries__ = None;
                let mut timeout_ms__ = None;
                let mut lazy__ = None;
                let mut purity__ = None;
                let mut live__ = None;
                let mut keep__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Resources => {
                            if resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resources"));
                            }
                            resources__ = Some(
                                map_.next_value::<std::collections::BTreeMap<_, ::pbjson::private::NumberDeserialize<u64>>>()?
                                    .into_iter().map(|(k,v)| (k, v.0)).collect()
                            );
                        }
                        GeneratedField::Retries => {
                            if retries__.is_some() {
                                return Err(serde::de::Error::duplicate_field("retries"));
                            }
                            retries__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::TimeoutMs => {
                            if timeout_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timeoutMs"));
                            }
                            timeout_ms__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Lazy => {
                            if lazy__.is_some() {
                                return Err(serde::de::Error::duplicate_field("lazy"));
                            }
                            lazy__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Purity => {
                            if purity__.is_some() {
                                return Err(serde::de::Error::duplicate_field("purity"));
                            }
                            purity__ = Some(map_.next_value::<Purity>()? as i32);
                        }
                        GeneratedField::Live => {
                            if live__.is_some() {
                                return Err(serde::de::Error::duplicate_field("live"));
                            }
                            live__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Keep => {
                            if keep__.is_some() {
                                return Err(serde::de::Error::duplicate_field("keep"));
                            }
                            keep__ = Some(map_.next_value::<Retention>()? as i32);
                        }
                    }
                }
                Ok(Options {
                    resources: resources__.unwrap_or_default(),
                    retries: retries__,
                    timeout_ms: timeout_ms__,
                    lazy: lazy__.unwrap_or_default(),
                    purity: purity__.unwrap_or_default(),
                    live: live__.unwrap_or_default(),
                    keep: keep__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Options", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Output {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.output != 0 {
            len += 1;
        }
        if self.value.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Output", len)?;
        if self.output != 0 {
            struct_ser.serialize_field("output", &self.output)?;
        }
        if let Some(v) = self.value.as_ref() {
            struct_ser.serialize_field("value", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Output {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "output",
            "value",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Output,
            Value,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "output" => Ok(GeneratedField::Output),
                            "value" => Ok(GeneratedField::Value),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Output;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Output")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Output, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut output__ = None;
                let mut value__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Output => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("output"));
                            }
                            output__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = map_.next_value()?;
                        }
                    }
                }
                Ok(Output {
                    output: output__.unwrap_or_default(),
                    value: value__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Output", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Parked {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("ciel.executor.Parked", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Parked {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Err(serde::de::Error::unknown_field(value, FIELDS))
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Parked;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Parked")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Parked, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(Parked {
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Parked", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Ping {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.nonce != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Ping", len)?;
        if self.nonce != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("nonce", ToString::to_string(&self.nonce).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Ping {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "nonce",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Nonce,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nonce" => Ok(GeneratedField::Nonce),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Ping;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Ping")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Ping, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut nonce__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Nonce => {
                            if nonce__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nonce"));
                            }
                            nonce__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Ping {
                    nonce: nonce__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Ping", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Pong {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.nonce != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Pong", len)?;
        if self.nonce != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("nonce", ToString::to_string(&self.nonce).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Pong {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "nonce",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Nonce,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nonce" => Ok(GeneratedField::Nonce),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Pong;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Pong")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Pong, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut nonce__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Nonce => {
                            if nonce__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nonce"));
                            }
                            nonce__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Pong {
                    nonce: nonce__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Pong", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PoolPolicy {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.reuse {
            len += 1;
        }
        if self.parked_strands_max != 0 {
            len += 1;
        }
        if self.slots != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.PoolPolicy", len)?;
        if self.reuse {
            struct_ser.serialize_field("reuse", &self.reuse)?;
        }
        if self.parked_strands_max != 0 {
            struct_ser.serialize_field("parkedStrandsMax", &self.parked_strands_max)?;
        }
        if self.slots != 0 {
            struct_ser.serialize_field("slots", &self.slots)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PoolPolicy {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "reuse",
            "parked_strands_max",
            "parkedStrandsMax",
            "slots",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Reuse,
            ParkedStrandsMax,
            Slots,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "reuse" => Ok(GeneratedField::Reuse),
                            "parkedStrandsMax" | "parked_strands_max" => Ok(GeneratedField::ParkedStrandsMax),
                            "slots" => Ok(GeneratedField::Slots),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PoolPolicy;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.PoolPolicy")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PoolPolicy, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut reuse__ = None;
                let mut parked_strands_max__ = None;
                let mut slots__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Reuse => {
                            if reuse__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reuse"));
                            }
                            reuse__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ParkedStrandsMax => {
                            if parked_strands_max__.is_some() {
                                return Err(serde::de::Error::duplicate_field("parkedStrandsMax"));
                            }
                            parked_strands_max__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Slots => {
                            if slots__.is_some() {
                                return Err(serde::de::Error::duplicate_field("slots"));
                            }
                            slots__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(PoolPolicy {
                    reuse: reuse__.unwrap_or_default(),
                    parked_strands_max: parked_strands_max__.unwrap_or_default(),
                    slots: slots__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.PoolPolicy", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Publish {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.output != 0 {
            len += 1;
        }
        if self.value.is_some() {
            len += 1;
        }
        if self.action != 0 {
            len += 1;
        }
        if self.handle != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Publish", len)?;
        if self.output != 0 {
            struct_ser.serialize_field("output", &self.output)?;
        }
        if let Some(v) = self.value.as_ref() {
            struct_ser.serialize_field("value", v)?;
        }
        if self.action != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("action", ToString::to_string(&self.action).as_str())?;
        }
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Publish {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "output",
            "value",
            "action",
            "handle",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Output,
            Value,
            Action,
            Handle,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "output" => Ok(GeneratedField::Output),
                            "value" => Ok(GeneratedField::Value),
                            "action" => Ok(GeneratedField::Action),
                            "handle" => Ok(GeneratedField::Handle),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Publish;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Publish")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Publish, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut output__ = None;
                let mut value__ = None;
                let mut action__ = None;
                let mut handle__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Output => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("output"));
                            }
                            output__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = map_.next_value()?;
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Publish {
                    output: output__.unwrap_or_default(),
                    value: value__,
                    action: action__.unwrap_or_default(),
                    handle: handle__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Publish", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Purity {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "PURITY_UNSPECIFIED",
            Self::Pure => "PURITY_PURE",
            Self::Impure => "PURITY_IMPURE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Purity {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "PURITY_UNSPECIFIED",
            "PURITY_PURE",
            "PURITY_IMPURE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Purity;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "PURITY_UNSPECIFIED" => Ok(Purity::Unspecified),
                    "PURITY_PURE" => Ok(Purity::Pure),
                    "PURITY_IMPURE" => Ok(Purity::Impure),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Recording {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.references.is_empty() {
            len += 1;
        }
        if !self.observations.is_empty() {
            len += 1;
        }
        if !self.spawned.is_empty() {
            len += 1;
        }
        if self.until != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Recording", len)?;
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        if !self.observations.is_empty() {
            struct_ser.serialize_field("observations", &self.observations)?;
        }
        if !self.spawned.is_empty() {
            struct_ser.serialize_field("spawned", &self.spawned.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        }
        if self.until != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("until", ToString::to_string(&self.until).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Recording {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "references",
            "observations",
            "spawned",
            "until",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            References,
            Observations,
            Spawned,
            Until,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "references" => Ok(GeneratedField::References),
                            "observations" => Ok(GeneratedField::Observations),
                            "spawned" => Ok(GeneratedField::Spawned),
                            "until" => Ok(GeneratedField::Until),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Recording;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Recording")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Recording, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut references__ = None;
                let mut observations__ = None;
                let mut spawned__ = None;
                let mut until__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Observations => {
                            if observations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observations"));
                            }
                            observations__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Spawned => {
                            if spawned__.is_some() {
                                return Err(serde::de::Error::duplicate_field("spawned"));
                            }
                            spawned__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Until => {
                            if until__.is_some() {
                                return Err(serde::de::Error::duplicate_field("until"));
                            }
                            until__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Recording {
                    references: references__.unwrap_or_default(),
                    observations: observations__.unwrap_or_default(),
                    spawned: spawned__.unwrap_or_default(),
                    until: until__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Recording", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Reference {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.handle != 0 {
            len += 1;
        }
        if self.state.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Reference", len)?;
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        if let Some(v) = self.state.as_ref() {
            match v {
                reference::State::Future(v) => {
                    struct_ser.serialize_field("future", v)?;
                }
                reference::State::Concrete(v) => {
                    struct_ser.serialize_field("concrete", v)?;
                }
                reference::State::Value(v) => {
                    struct_ser.serialize_field("value", v)?;
                }
                reference::State::Error(v) => {
                    struct_ser.serialize_field("error", v)?;
                }
                reference::State::Stream(v) => {
                    struct_ser.serialize_field("stream", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Reference {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "handle",
            "future",
            "concrete",
            "value",
            "error",
            "stream",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Handle,
            Future,
            Concrete,
            Value,
            Error,
            Stream,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "handle" => Ok(GeneratedField::Handle),
                            "future" => Ok(GeneratedField::Future),
                            "concrete" => Ok(GeneratedField::Concrete),
                            "value" => Ok(GeneratedField::Value),
                            "error" => Ok(GeneratedField::Error),
                            "stream" => Ok(GeneratedField::Stream),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Reference;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Reference")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Reference, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut handle__ = None;
                let mut state__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Future => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("future"));
                            }
                            state__ = map_.next_value::<::std::option::Option<_>>()?.map(reference::State::Future)
;
                        }
                        GeneratedField::Concrete => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("concrete"));
                            }
                            state__ = map_.next_value::<::std::option::Option<_>>()?.map(reference::State::Concrete)
;
                        }
                        GeneratedField::Value => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            state__ = map_.next_value::<::std::option::Option<_>>()?.map(reference::State::Value)
;
                        }
                        GeneratedField::Error => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            state__ = map_.next_value::<::std::option::Option<_>>()?.map(reference::State::Error)
;
                        }
                        GeneratedField::Stream => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stream"));
                            }
                            state__ = map_.next_value::<::std::option::Option<_>>()?.map(reference::State::Stream)
;
                        }
                    }
                }
                Ok(Reference {
                    handle: handle__.unwrap_or_default(),
                    state: state__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Reference", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Refusal {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.hint.is_empty() {
            len += 1;
        }
        if self.protocol != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Refusal", len)?;
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.hint.is_empty() {
            struct_ser.serialize_field("hint", &self.hint)?;
        }
        if self.protocol != 0 {
            struct_ser.serialize_field("protocol", &self.protocol)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Refusal {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "reason",
            "hint",
            "protocol",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Reason,
            Hint,
            Protocol,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "reason" => Ok(GeneratedField::Reason),
                            "hint" => Ok(GeneratedField::Hint),
                            "protocol" => Ok(GeneratedField::Protocol),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Refusal;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Refusal")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Refusal, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut reason__ = None;
                let mut hint__ = None;
                let mut protocol__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Hint => {
                            if hint__.is_some() {
                                return Err(serde::de::Error::duplicate_field("hint"));
                            }
                            hint__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Protocol => {
                            if protocol__.is_some() {
                                return Err(serde::de::Error::duplicate_field("protocol"));
                            }
                            protocol__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Refusal {
                    reason: reason__.unwrap_or_default(),
                    hint: hint__.unwrap_or_default(),
                    protocol: protocol__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Refusal", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Replay {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("ciel.executor.Replay", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Replay {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Err(serde::de::Error::unknown_field(value, FIELDS))
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Replay;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Replay")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Replay, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(Replay {
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Replay", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Resume {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.answers.is_empty() {
            len += 1;
        }
        if self.timed_out {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Resume", len)?;
        if !self.answers.is_empty() {
            struct_ser.serialize_field("answers", &self.answers)?;
        }
        if self.timed_out {
            struct_ser.serialize_field("timedOut", &self.timed_out)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Resume {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "answers",
            "timed_out",
            "timedOut",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Answers,
            TimedOut,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "answers" => Ok(GeneratedField::Answers),
                            "timedOut" | "timed_out" => Ok(GeneratedField::TimedOut),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Resume;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Resume")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Resume, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut answers__ = None;
                let mut timed_out__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Answers => {
                            if answers__.is_some() {
                                return Err(serde::de::Error::duplicate_field("answers"));
                            }
                            answers__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TimedOut => {
                            if timed_out__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timedOut"));
                            }
                            timed_out__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Resume {
                    answers: answers__.unwrap_or_default(),
                    timed_out: timed_out__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Resume", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Retention {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "RETENTION_UNSPECIFIED",
            Self::Keep => "RETENTION_KEEP",
            Self::Never => "RETENTION_NEVER",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Retention {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "RETENTION_UNSPECIFIED",
            "RETENTION_KEEP",
            "RETENTION_NEVER",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Retention;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "RETENTION_UNSPECIFIED" => Ok(Retention::Unspecified),
                    "RETENTION_KEEP" => Ok(Retention::Keep),
                    "RETENTION_NEVER" => Ok(Retention::Never),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Saved {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.data.is_empty() {
            len += 1;
        }
        if !self.runtime.is_empty() {
            len += 1;
        }
        if !self.code.is_empty() {
            len += 1;
        }
        if !self.references.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Saved", len)?;
        if !self.data.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("data", pbjson::private::base64::encode(&self.data).as_str())?;
        }
        if !self.runtime.is_empty() {
            struct_ser.serialize_field("runtime", &self.runtime)?;
        }
        if !self.code.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("code", pbjson::private::base64::encode(&self.code).as_str())?;
        }
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Saved {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "data",
            "runtime",
            "code",
            "references",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Data,
            Runtime,
            Code,
            References,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "data" => Ok(GeneratedField::Data),
                            "runtime" => Ok(GeneratedField::Runtime),
                            "code" => Ok(GeneratedField::Code),
                            "references" => Ok(GeneratedField::References),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Saved;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Saved")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Saved, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut data__ = None;
                let mut runtime__ = None;
                let mut code__ = None;
                let mut references__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Runtime => {
                            if runtime__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runtime"));
                            }
                            runtime__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Code => {
                            if code__.is_some() {
                                return Err(serde::de::Error::duplicate_field("code"));
                            }
                            code__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                    }
                }
                Ok(Saved {
                    data: data__.unwrap_or_default(),
                    runtime: runtime__.unwrap_or_default(),
                    code: code__.unwrap_or_default(),
                    references: references__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Saved", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SavedContinuation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.data.is_empty() {
            len += 1;
        }
        if !self.runtime.is_empty() {
            len += 1;
        }
        if !self.code.is_empty() {
            len += 1;
        }
        if !self.references.is_empty() {
            len += 1;
        }
        if self.timed_out {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.SavedContinuation", len)?;
        if !self.data.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("data", pbjson::private::base64::encode(&self.data).as_str())?;
        }
        if !self.runtime.is_empty() {
            struct_ser.serialize_field("runtime", &self.runtime)?;
        }
        if !self.code.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("code", pbjson::private::base64::encode(&self.code).as_str())?;
        }
        if !self.references.is_empty() {
            struct_ser.serialize_field("references", &self.references)?;
        }
        if self.timed_out {
            struct_ser.serialize_field("timedOut", &self.timed_out)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SavedContinuation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "data",
            "runtime",
            "code",
            "references",
            "timed_out",
            "timedOut",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Data,
            Runtime,
            Code,
            References,
            TimedOut,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "data" => Ok(GeneratedField::Data),
                            "runtime" => Ok(GeneratedField::Runtime),
                            "code" => Ok(GeneratedField::Code),
                            "references" => Ok(GeneratedField::References),
                            "timedOut" | "timed_out" => Ok(GeneratedField::TimedOut),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SavedContinuation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.SavedContinuation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SavedContinuation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut data__ = None;
                let mut runtime__ = None;
                let mut code__ = None;
                let mut references__ = None;
                let mut timed_out__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Runtime => {
                            if runtime__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runtime"));
                            }
                            runtime__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Code => {
                            if code__.is_some() {
                                return Err(serde::de::Error::duplicate_field("code"));
                            }
                            code__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::References => {
                            if references__.is_some() {
                                return Err(serde::de::Error::duplicate_field("references"));
                            }
                            references__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TimedOut => {
                            if timed_out__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timedOut"));
                            }
                            timed_out__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(SavedContinuation {
                    data: data__.unwrap_or_default(),
                    runtime: runtime__.unwrap_or_default(),
                    code: code__.unwrap_or_default(),
                    references: references__.unwrap_or_default(),
                    timed_out: timed_out__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.SavedContinuation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Shutdown {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.failures.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Shutdown", len)?;
        if !self.failures.is_empty() {
            struct_ser.serialize_field("failures", &self.failures)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Shutdown {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "failures",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Failures,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "failures" => Ok(GeneratedField::Failures),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Shutdown;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Shutdown")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Shutdown, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut failures__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Failures => {
                            if failures__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failures"));
                            }
                            failures__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Shutdown {
                    failures: failures__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Shutdown", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Sink {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Stdout => "SINK_STDOUT",
            Self::Stderr => "SINK_STDERR",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Sink {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "SINK_STDOUT",
            "SINK_STDERR",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Sink;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "SINK_STDOUT" => Ok(Sink::Stdout),
                    "SINK_STDERR" => Ok(Sink::Stderr),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Site {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.file.is_empty() {
            len += 1;
        }
        if self.line != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Site", len)?;
        if !self.file.is_empty() {
            struct_ser.serialize_field("file", &self.file)?;
        }
        if self.line != 0 {
            struct_ser.serialize_field("line", &self.line)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Site {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "file",
            "line",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            File,
            Line,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "file" => Ok(GeneratedField::File),
                            "line" => Ok(GeneratedField::Line),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Site;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Site")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Site, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut file__ = None;
                let mut line__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::File => {
                            if file__.is_some() {
                                return Err(serde::de::Error::duplicate_field("file"));
                            }
                            file__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Line => {
                            if line__.is_some() {
                                return Err(serde::de::Error::duplicate_field("line"));
                            }
                            line__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Site {
                    file: file__.unwrap_or_default(),
                    line: line__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Site", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Spawn {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.tasks.is_empty() {
            len += 1;
        }
        if self.action != 0 {
            len += 1;
        }
        if self.handle != 0 {
            len += 1;
        }
        if !self.released.is_empty() {
            len += 1;
        }
        if self.begun {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Spawn", len)?;
        if !self.tasks.is_empty() {
            struct_ser.serialize_field("tasks", &self.tasks)?;
        }
        if self.action != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("action", ToString::to_string(&self.action).as_str())?;
        }
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        if !self.released.is_empty() {
            struct_ser.serialize_field("released", &self.released)?;
        }
        if self.begun {
            struct_ser.serialize_field("begun", &self.begun)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Spawn {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "tasks",
            "action",
            "handle",
            "released",
            "begun",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Tasks,
            Action,
            Handle,
            Released,
            Begun,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "tasks" => Ok(GeneratedField::Tasks),
                            "action" => Ok(GeneratedField::Action),
                            "handle" => Ok(GeneratedField::Handle),
                            "released" => Ok(GeneratedField::Released),
                            "begun" => Ok(GeneratedField::Begun),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Spawn;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Spawn")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Spawn, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut tasks__ = None;
                let mut action__ = None;
                let mut handle__ = None;
                let mut released__ = None;
                let mut begun__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Tasks => {
                            if tasks__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tasks"));
                            }
                            tasks__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Released => {
                            if released__.is_some() {
                                return Err(serde::de::Error::duplicate_field("released"));
                            }
                            released__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Begun => {
                            if begun__.is_some() {
                                return Err(serde::de::Error::duplicate_field("begun"));
                            }
                            begun__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Spawn {
                    tasks: tasks__.unwrap_or_default(),
                    action: action__.unwrap_or_default(),
                    handle: handle__.unwrap_or_default(),
                    released: released__.unwrap_or_default(),
                    begun: begun__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Spawn", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Start {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.definition != 0 {
            len += 1;
        }
        if !self.payload.is_empty() {
            len += 1;
        }
        if !self.inputs.is_empty() {
            len += 1;
        }
        if !self.position.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if self.action != 0 {
            len += 1;
        }
        if self.handle != 0 {
            len += 1;
        }
        if !self.scratch.is_empty() {
            len += 1;
        }
        if self.ahead.is_some() {
            len += 1;
        }
        if self.continuation.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Start", len)?;
        if self.definition != 0 {
            struct_ser.serialize_field("definition", &self.definition)?;
        }
        if !self.payload.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("payload", pbjson::private::base64::encode(&self.payload).as_str())?;
        }
        if !self.inputs.is_empty() {
            struct_ser.serialize_field("inputs", &self.inputs)?;
        }
        if !self.position.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("position", pbjson::private::base64::encode(&self.position).as_str())?;
        }
        if !self.name.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("name", pbjson::private::base64::encode(&self.name).as_str())?;
        }
        if self.action != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("action", ToString::to_string(&self.action).as_str())?;
        }
        if self.handle != 0 {
            struct_ser.serialize_field("handle", &self.handle)?;
        }
        if !self.scratch.is_empty() {
            struct_ser.serialize_field("scratch", &self.scratch)?;
        }
        if let Some(v) = self.ahead.as_ref() {
            struct_ser.serialize_field("ahead", v)?;
        }
        if let Some(v) = self.continuation.as_ref() {
            match v {
                start::Continuation::Saved(v) => {
                    struct_ser.serialize_field("saved", v)?;
                }
                start::Continuation::Replay(v) => {
                    struct_ser.serialize_field("replay", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Start {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "definition",
            "payload",
            "inputs",
            "position",
            "name",
            "action",
            "handle",
            "scratch",
            "ahead",
            "saved",
            "replay",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Definition,
            Payload,
            Inputs,
            Position,
            Name,
            Action,
            Handle,
            Scratch,
            Ahead,
            Saved,
            Replay,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "definition" => Ok(GeneratedField::Definition),
                            "payload" => Ok(GeneratedField::Payload),
                            "inputs" => Ok(GeneratedField::Inputs),
                            "position" => Ok(GeneratedField::Position),
                            "name" => Ok(GeneratedField::Name),
                            "action" => Ok(GeneratedField::Action),
                            "handle" => Ok(GeneratedField::Handle),
                            "scratch" => Ok(GeneratedField::Scratch),
                            "ahead" => Ok(GeneratedField::Ahead),
                            "saved" => Ok(GeneratedField::Saved),
                            "replay" => Ok(GeneratedField::Replay),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Start;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Start")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Start, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut definition__ = None;
                let mut payload__ = None;
                let mut inputs__ = None;
                let mut position__ = None;
                let mut name__ = None;
                let mut action__ = None;
                let mut handle__ = None;
                let mut scratch__ = None;
                let mut ahead__ = None;
                let mut continuation__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Definition => {
                            if definition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("definition"));
                            }
                            definition__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Payload => {
                            if payload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("payload"));
                            }
                            payload__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Inputs => {
                            if inputs__.is_some() {
                                return Err(serde::de::Error::duplicate_field("inputs"));
                            }
                            inputs__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Position => {
                            if position__.is_some() {
                                return Err(serde::de::Error::duplicate_field("position"));
                            }
                            position__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Handle => {
                            if handle__.is_some() {
                                return Err(serde::de::Error::duplicate_field("handle"));
                            }
                            handle__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Scratch => {
                            if scratch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("scratch"));
                            }
                            scratch__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Ahead => {
                            if ahead__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ahead"));
                            }
                            ahead__ = map_.next_value()?;
                        }
                        GeneratedField::Saved => {
                            if continuation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("saved"));
                            }
                            continuation__ = map_.next_value::<::std::option::Option<_>>()?.map(start::Continuation::Saved)
;
                        }
                        GeneratedField::Replay => {
                            if continuation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replay"));
                            }
                            continuation__ = map_.next_value::<::std::option::Option<_>>()?.map(start::Continuation::Replay)
;
                        }
                    }
                }
                Ok(Start {
                    definition: definition__.unwrap_or_default(),
                    payload: payload__.unwrap_or_default(),
                    inputs: inputs__.unwrap_or_default(),
                    position: position__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    action: action__.unwrap_or_default(),
                    handle: handle__.unwrap_or_default(),
                    scratch: scratch__.unwrap_or_default(),
                    ahead: ahead__,
                    continuation: continuation__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Start", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Stream {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.path.is_empty() {
            len += 1;
        }
        if !self.form.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Stream", len)?;
        if !self.path.is_empty() {
            struct_ser.serialize_field("path", &self.path)?;
        }
        if !self.form.is_empty() {
            struct_ser.serialize_field("form", &self.form)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Stream {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "path",
            "form",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Path,
            Form,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "path" => Ok(GeneratedField::Path),
                            "form" => Ok(GeneratedField::Form),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Stream;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Stream")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Stream, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut path__ = None;
                let mut form__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Path => {
                            if path__.is_some() {
                                return Err(serde::de::Error::duplicate_field("path"));
                            }
                            path__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Form => {
                            if form__.is_some() {
                                return Err(serde::de::Error::duplicate_field("form"));
                            }
                            form__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Stream {
                    path: path__.unwrap_or_default(),
                    form: form__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Stream", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for StreamMode {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "STREAM_MODE_UNSPECIFIED",
            Self::NoStream => "STREAM_MODE_NO_STREAM",
            Self::Overlap => "STREAM_MODE_OVERLAP",
            Self::IndirectFile => "STREAM_MODE_INDIRECT_FILE",
            Self::IndirectPipe => "STREAM_MODE_INDIRECT_PIPE",
            Self::IndirectTcp => "STREAM_MODE_INDIRECT_TCP",
            Self::Direct => "STREAM_MODE_DIRECT",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for StreamMode {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "STREAM_MODE_UNSPECIFIED",
            "STREAM_MODE_NO_STREAM",
            "STREAM_MODE_OVERLAP",
            "STREAM_MODE_INDIRECT_FILE",
            "STREAM_MODE_INDIRECT_PIPE",
            "STREAM_MODE_INDIRECT_TCP",
            "STREAM_MODE_DIRECT",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = StreamMode;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "STREAM_MODE_UNSPECIFIED" => Ok(StreamMode::Unspecified),
                    "STREAM_MODE_NO_STREAM" => Ok(StreamMode::NoStream),
                    "STREAM_MODE_OVERLAP" => Ok(StreamMode::Overlap),
                    "STREAM_MODE_INDIRECT_FILE" => Ok(StreamMode::IndirectFile),
                    "STREAM_MODE_INDIRECT_PIPE" => Ok(StreamMode::IndirectPipe),
                    "STREAM_MODE_INDIRECT_TCP" => Ok(StreamMode::IndirectTcp),
                    "STREAM_MODE_DIRECT" => Ok(StreamMode::Direct),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for StreamShared {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.output != 0 {
            len += 1;
        }
        if self.bytes != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.StreamShared", len)?;
        if self.output != 0 {
            struct_ser.serialize_field("output", &self.output)?;
        }
        if self.bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("bytes", ToString::to_string(&self.bytes).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for StreamShared {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "output",
            "bytes",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Output,
            Bytes,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "output" => Ok(GeneratedField::Output),
                            "bytes" => Ok(GeneratedField::Bytes),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = StreamShared;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.StreamShared")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<StreamShared, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut output__ = None;
                let mut bytes__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Output => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("output"));
                            }
                            output__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Bytes => {
                            if bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("bytes"));
                            }
                            bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(StreamShared {
                    output: output__.unwrap_or_default(),
                    bytes: bytes__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.StreamShared", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for StreamWish {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.mode != 0 {
            len += 1;
        }
        if self.may_stream {
            len += 1;
        }
        if self.must_block {
            len += 1;
        }
        if self.no_store {
            len += 1;
        }
        if self.granularity_bytes != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.StreamWish", len)?;
        if self.mode != 0 {
            let v = StreamMode::try_from(self.mode)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.mode)))?;
            struct_ser.serialize_field("mode", &v)?;
        }
        if self.may_stream {
            struct_ser.serialize_field("mayStream", &self.may_stream)?;
        }
        if self.must_block {
            struct_ser.serialize_field("mustBlock", &self.must_block)?;
        }
        if self.no_store {
            struct_ser.serialize_field("noStore", &self.no_store)?;
        }
        if self.granularity_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("granularityBytes", ToString::to_string(&self.granularity_bytes).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for StreamWish {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "mode",
            "may_stream",
            "mayStream",
            "must_block",
            "mustBlock",
            "no_store",
            "noStore",
            "granularity_bytes",
            "granularityBytes",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Mode,
            MayStream,
            MustBlock,
            NoStore,
            GranularityBytes,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "mode" => Ok(GeneratedField::Mode),
                            "mayStream" | "may_stream" => Ok(GeneratedField::MayStream),
                            "mustBlock" | "must_block" => Ok(GeneratedField::MustBlock),
                            "noStore" | "no_store" => Ok(GeneratedField::NoStore),
                            "granularityBytes" | "granularity_bytes" => Ok(GeneratedField::GranularityBytes),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = StreamWish;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.StreamWish")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<StreamWish, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut mode__ = None;
                let mut may_stream__ = None;
                let mut must_block__ = None;
                let mut no_store__ = None;
                let mut granularity_bytes__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Mode => {
                            if mode__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mode"));
                            }
                            mode__ = Some(map_.next_value::<StreamMode>()? as i32);
                        }
                        GeneratedField::MayStream => {
                            if may_stream__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mayStream"));
                            }
                            may_stream__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MustBlock => {
                            if must_block__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mustBlock"));
                            }
                            must_block__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NoStore => {
                            if no_store__.is_some() {
                                return Err(serde::de::Error::duplicate_field("noStore"));
                            }
                            no_store__ = Some(map_.next_value()?);
                        }
                        GeneratedField::GranularityBytes => {
                            if granularity_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("granularityBytes"));
                            }
                            granularity_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(StreamWish {
                    mode: mode__.unwrap_or_default(),
                    may_stream: may_stream__.unwrap_or_default(),
                    must_block: must_block__.unwrap_or_default(),
                    no_store: no_store__.unwrap_or_default(),
                    granularity_bytes: granularity_bytes__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.StreamWish", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TailSpawn {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.task.is_some() {
            len += 1;
        }
        if self.after != 0 {
            len += 1;
        }
        if self.audit.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.TailSpawn", len)?;
        if let Some(v) = self.task.as_ref() {
            struct_ser.serialize_field("task", v)?;
        }
        if self.after != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("after", ToString::to_string(&self.after).as_str())?;
        }
        if let Some(v) = self.audit.as_ref() {
            struct_ser.serialize_field("audit", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TailSpawn {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "task",
            "after",
            "audit",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Task,
            After,
            Audit,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "task" => Ok(GeneratedField::Task),
                            "after" => Ok(GeneratedField::After),
                            "audit" => Ok(GeneratedField::Audit),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TailSpawn;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.TailSpawn")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TailSpawn, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut task__ = None;
                let mut after__ = None;
                let mut audit__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Task => {
                            if task__.is_some() {
                                return Err(serde::de::Error::duplicate_field("task"));
                            }
                            task__ = map_.next_value()?;
                        }
                        GeneratedField::After => {
                            if after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("after"));
                            }
                            after__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Audit => {
                            if audit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("audit"));
                            }
                            audit__ = map_.next_value()?;
                        }
                    }
                }
                Ok(TailSpawn {
                    task: task__,
                    after: after__.unwrap_or_default(),
                    audit: audit__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.TailSpawn", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Wait {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::All => "WAIT_ALL",
            Self::First => "WAIT_FIRST",
            Self::Rest => "WAIT_REST",
            Self::AllAndLater => "WAIT_ALL_AND_LATER",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Wait {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "WAIT_ALL",
            "WAIT_FIRST",
            "WAIT_REST",
            "WAIT_ALL_AND_LATER",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Wait;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "WAIT_ALL" => Ok(Wait::All),
                    "WAIT_FIRST" => Ok(Wait::First),
                    "WAIT_REST" => Ok(Wait::Rest),
                    "WAIT_ALL_AND_LATER" => Ok(Wait::AllAndLater),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for WorkerMessage {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.tag != 0 {
            len += 1;
        }
        if self.kind.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.WorkerMessage", len)?;
        if self.tag != 0 {
            struct_ser.serialize_field("tag", &self.tag)?;
        }
        if let Some(v) = self.kind.as_ref() {
            match v {
                worker_message::Kind::Hello(v) => {
                    struct_ser.serialize_field("hello", v)?;
                }
                worker_message::Kind::Pong(v) => {
                    struct_ser.serialize_field("pong", v)?;
                }
                worker_message::Kind::Construct(v) => {
                    struct_ser.serialize_field("construct", v)?;
                }
                worker_message::Kind::Spawn(v) => {
                    struct_ser.serialize_field("spawn", v)?;
                }
                worker_message::Kind::Publish(v) => {
                    struct_ser.serialize_field("publish", v)?;
                }
                worker_message::Kind::TailSpawn(v) => {
                    struct_ser.serialize_field("tailSpawn", v)?;
                }
                worker_message::Kind::OpenReference(v) => {
                    struct_ser.serialize_field("openReference", v)?;
                }
                worker_message::Kind::OpenOutput(v) => {
                    struct_ser.serialize_field("openOutput", v)?;
                }
                worker_message::Kind::OpenConstruct(v) => {
                    struct_ser.serialize_field("openConstruct", v)?;
                }
                worker_message::Kind::Commit(v) => {
                    struct_ser.serialize_field("commit", v)?;
                }
                worker_message::Kind::BlockOn(v) => {
                    struct_ser.serialize_field("blockOn", v)?;
                }
                worker_message::Kind::Write(v) => {
                    struct_ser.serialize_field("write", v)?;
                }
                worker_message::Kind::Observe(v) => {
                    struct_ser.serialize_field("observe", v)?;
                }
                worker_message::Kind::Log(v) => {
                    struct_ser.serialize_field("log", v)?;
                }
                worker_message::Kind::Error(v) => {
                    struct_ser.serialize_field("error", v)?;
                }
                worker_message::Kind::Exit(v) => {
                    struct_ser.serialize_field("exit", v)?;
                }
                worker_message::Kind::GiveBack(v) => {
                    struct_ser.serialize_field("giveBack", v)?;
                }
                worker_message::Kind::Define(v) => {
                    struct_ser.serialize_field("define", v)?;
                }
                worker_message::Kind::EndedInPlace(v) => {
                    struct_ser.serialize_field("endedInPlace", v)?;
                }
                worker_message::Kind::Caches(v) => {
                    struct_ser.serialize_field("caches", v)?;
                }
                worker_message::Kind::OpenShared(v) => {
                    struct_ser.serialize_field("openShared", v)?;
                }
                worker_message::Kind::StreamShared(v) => {
                    struct_ser.serialize_field("streamShared", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for WorkerMessage {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "tag",
            "hello",
            "pong",
            "construct",
            "spawn",
            "publish",
            "tail_spawn",
            "tailSpawn",
            "open_reference",
            "openReference",
            "open_output",
            "openOutput",
            "open_construct",
            "openConstruct",
            "commit",
            "block_on",
            "blockOn",
            "write",
            "observe",
            "log",
            "error",
            "exit",
            "give_back",
            "giveBack",
            "define",
            "ended_in_place",
            "endedInPlace",
            "caches",
            "open_shared",
            "openShared",
            "stream_shared",
            "streamShared",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Tag,
            Hello,
            Pong,
            Construct,
            Spawn,
            Publish,
            TailSpawn,
            OpenReference,
            OpenOutput,
            OpenConstruct,
            Commit,
            BlockOn,
            Write,
            Observe,
            Log,
            Error,
            Exit,
            GiveBack,
            Define,
            EndedInPlace,
            Caches,
            OpenShared,
            StreamShared,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "tag" => Ok(GeneratedField::Tag),
                            "hello" => Ok(GeneratedField::Hello),
                            "pong" => Ok(GeneratedField::Pong),
                            "construct" => Ok(GeneratedField::Construct),
                            "spawn" => Ok(GeneratedField::Spawn),
                            "publish" => Ok(GeneratedField::Publish),
                            "tailSpawn" | "tail_spawn" => Ok(GeneratedField::TailSpawn),
                            "openReference" | "open_reference" => Ok(GeneratedField::OpenReference),
                            "openOutput" | "open_output" => Ok(GeneratedField::OpenOutput),
                            "openConstruct" | "open_construct" => Ok(GeneratedField::OpenConstruct),
                            "commit" => Ok(GeneratedField::Commit),
                            "blockOn" | "block_on" => Ok(GeneratedField::BlockOn),
                            "write" => Ok(GeneratedField::Write),
                            "observe" => Ok(GeneratedField::Observe),
                            "log" => Ok(GeneratedField::Log),
                            "error" => Ok(GeneratedField::Error),
                            "exit" => Ok(GeneratedField::Exit),
                            "giveBack" | "give_back" => Ok(GeneratedField::GiveBack),
                            "define" => Ok(GeneratedField::Define),
                            "endedInPlace" | "ended_in_place" => Ok(GeneratedField::EndedInPlace),
                            "caches" => Ok(GeneratedField::Caches),
                            "openShared" | "open_shared" => Ok(GeneratedField::OpenShared),
                            "streamShared" | "stream_shared" => Ok(GeneratedField::StreamShared),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = WorkerMessage;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.WorkerMessage")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<WorkerMessage, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut tag__ = None;
                let mut kind__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Tag => {
                            if tag__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tag"));
                            }
                            tag__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Hello => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("hello"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Hello)
;
                        }
                        GeneratedField::Pong => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pong"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Pong)
;
                        }
                        GeneratedField::Construct => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("construct"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Construct)
;
                        }
                        GeneratedField::Spawn => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("spawn"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Spawn)
;
                        }
                        GeneratedField::Publish => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("publish"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Publish)
;
                        }
                        GeneratedField::TailSpawn => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tailSpawn"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::TailSpawn)
;
                        }
                        GeneratedField::OpenReference => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("openReference"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::OpenReference)
;
                        }
                        GeneratedField::OpenOutput => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("openOutput"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::OpenOutput)
;
                        }
                        GeneratedField::OpenConstruct => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("openConstruct"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::OpenConstruct)
;
                        }
                        GeneratedField::Commit => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("commit"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Commit)
;
                        }
                        GeneratedField::BlockOn => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blockOn"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::BlockOn)
;
                        }
                        GeneratedField::Write => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("write"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Write)
;
                        }
                        GeneratedField::Observe => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observe"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Observe)
;
                        }
                        GeneratedField::Log => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("log"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Log)
;
                        }
                        GeneratedField::Error => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Error)
;
                        }
                        GeneratedField::Exit => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("exit"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Exit)
;
                        }
                        GeneratedField::GiveBack => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("giveBack"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::GiveBack)
;
                        }
                        GeneratedField::Define => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("define"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Define)
;
                        }
                        GeneratedField::EndedInPlace => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("endedInPlace"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::EndedInPlace)
;
                        }
                        GeneratedField::Caches => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("caches"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::Caches)
;
                        }
                        GeneratedField::OpenShared => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("openShared"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::OpenShared)
;
                        }
                        GeneratedField::StreamShared => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("streamShared"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(worker_message::Kind::StreamShared)
;
                        }
                    }
                }
                Ok(WorkerMessage {
                    tag: tag__.unwrap_or_default(),
                    kind: kind__,
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.WorkerMessage", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Write {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.sink != 0 {
            len += 1;
        }
        if !self.data.is_empty() {
            len += 1;
        }
        if self.after != 0 {
            len += 1;
        }
        if !self.file.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("ciel.executor.Write", len)?;
        if self.sink != 0 {
            let v = Sink::try_from(self.sink)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.sink)))?;
            struct_ser.serialize_field("sink", &v)?;
        }
        if !self.data.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("data", pbjson::private::base64::encode(&self.data).as_str())?;
        }
        if self.after != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("after", ToString::to_string(&self.after).as_str())?;
        }
        if !self.file.is_empty() {
            struct_ser.serialize_field("file", &self.file)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Write {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "sink",
            "data",
            "after",
            "file",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Sink,
            Data,
            After,
            File,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "sink" => Ok(GeneratedField::Sink),
                            "data" => Ok(GeneratedField::Data),
                            "after" => Ok(GeneratedField::After),
                            "file" => Ok(GeneratedField::File),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Write;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct ciel.executor.Write")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Write, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut sink__ = None;
                let mut data__ = None;
                let mut after__ = None;
                let mut file__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Sink => {
                            if sink__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sink"));
                            }
                            sink__ = Some(map_.next_value::<Sink>()? as i32);
                        }
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::After => {
                            if after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("after"));
                            }
                            after__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::File => {
                            if file__.is_some() {
                                return Err(serde::de::Error::duplicate_field("file"));
                            }
                            file__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Write {
                    sink: sink__.unwrap_or_default(),
                    data: data__.unwrap_or_default(),
                    after: after__.unwrap_or_default(),
                    file: file__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("ciel.executor.Write", FIELDS, GeneratedVisitor)
    }
}
