package blobtest

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// getServiceProperties serves Get Blob Service Properties. It returns the CORS rules and the default version
// of the server, and for everything else the settings of a new account.
func getServiceProperties(c *call) (*reply, error) {
	b := startXML()
	b.WriteString("<StorageServiceProperties>")
	b.WriteString("<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>" + noRetention + "</Logging>")
	for _, name := range []string{"HourMetrics", "MinuteMetrics"} {
		b.WriteString("<" + name + "><Version>1.0</Version><Enabled>false</Enabled>" + noRetention + "</" + name + ">")
	}
	b.WriteString("<Cors>")
	for _, rule := range c.o.CORS {
		rule.writeXML(b)
	}
	b.WriteString("</Cors>")
	element(b, "DefaultServiceVersion", c.o.DefaultVersion.String())
	b.WriteString("<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>")
	b.WriteString("<StaticWebsite><Enabled>false</Enabled></StaticWebsite>")
	b.WriteString("</StorageServiceProperties>")
	rep := newReply(http.StatusOK)
	rep.header.Set("Content-Type", "application/xml")
	rep.body = segments{b.Bytes()}
	return rep, nil
}

const noRetention = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"

func (u *CORSRule) writeXML(b *bytes.Buffer) {
	b.WriteString("<CorsRule>")
	element(b, "AllowedOrigins", strings.Join(u.Origins, ","))
	element(b, "AllowedMethods", strings.Join(u.Methods, ","))
	element(b, "AllowedHeaders", strings.Join(u.AllowedHeaders, ","))
	element(b, "ExposedHeaders", strings.Join(u.ExposedHeaders, ","))
	element(b, "MaxAgeInSeconds", strconv.FormatInt(int64(u.MaxAge/time.Second), 10))
	b.WriteString("</CorsRule>")
}

// getAccountInformation succeeds even if the URL of the request names a container or a blob that does not
// exist.
func getAccountInformation(*call) (*reply, error) {
	rep := newReply(http.StatusOK)
	rep.header.Set("x-ms-sku-name", "Standard_LRS")
	rep.header.Set("x-ms-account-kind", "StorageV2")
	rep.header.Set("x-ms-is-hns-enabled", "false")
	return rep, nil
}
